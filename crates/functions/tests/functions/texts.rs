//! Text, bytes, patterns and URLs.

use datafusion::arrow::array::{BinaryArray, Int32Array, StringArray};
use highwater_functions::take_row_errors;

use crate::harness::{check, column, over, value};

#[test]
fn text() {
    check(&[
        ("chr(8364)", "€"),
        ("chr(-1)", "NULL"),
        ("chr(55296)", "NULL"),
        ("chr('\\ud83d\\ude00')", "😀"),
        ("chr('x')", "NULL"),
        ("concat(NULL, 'a', NULL)", "a"),
        ("concat('a')", "a"),
        ("replace('ab', '', '-')", "-a-b-"),
        ("lcase('AbC1')", "abc1"),
        ("concat_ws(NULL, 'a', 'b')", "NULL"),
        ("concat_ws(',', NULL, NULL)", ""),
        ("elt(0, 'a')", "NULL"),
        ("elt(3, 'a', 'b')", "NULL"),
        ("elt(NULL, 'a')", "NULL"),
        ("field('c', 'a', 'b')", "0"),
        ("initcap('two  words\tmore')", "Two  Words\tMore"),
        ("instr('pepper', 'p', -4, 2)", "1"),
        ("instr(NULL, 'p')", "NULL"),
        ("lcase('ÀB')", "àb"),
        ("ucase(NULL)", "NULL"),
        ("len('naïve')", "5"),
        ("len('')", "0"),
        ("len(to_bytes('ab', 'utf8'))", "2"),
        ("md5('')", "d41d8cd98f00b204e9800998ecf8427e"),
        ("replace('aaa', 'a', 'b')", "bbb"),
        ("replace('a', NULL, 'b')", "NULL"),
        ("substring('stream', 0)", "stream"),
        ("substring('stream', -2)", "am"),
        ("substring('stream', 3, 2)", "re"),
        ("substring('stream', NULL)", "NULL"),
        ("substring('größe', 4, 2)", "ße"),
        ("trim(' \t x y ')", "x y"),
        ("lpad('ab', 5, 'xyz')", "xyzab"),
        ("lpad('ab', 0, 'x')", ""),
        ("lpad('ab', -1, 'x')", "NULL"),
        ("lpad('ab', 5, '')", "NULL"),
        ("rpad('ab', 1, 'x')", "a"),
        ("rpad('', 4, 'xyz')", "xyzx"),
        ("rpad('a', 2000000000, 'x')", "NULL"),
        ("mask('Ab-9', NULL, '*', NULL, '_')", "A*_9"),
        ("mask_left('Ab12', -1)", "NULL"),
        ("mask_left('Ab12', 9)", "Xxnn"),
        ("mask_keep_right('Ab12', 9)", "Ab12"),
        ("mask_right('Ab12', 2, 'U', 'l', '#', ' ')", "Ab##"),
        ("mask(NULL)", "NULL"),
        ("split('a,b,', ',')", "[a, b, ]"),
        ("split('ab', '')", "[a, b]"),
        ("split('a', NULL)", "NULL"),
        ("split_to_map('a:1//b:2/c', '/', ':')", "{a: 1, b: 2}"),
        ("split_to_map('a:1/a:2', '/', ':')", "{a: 2}"),
        ("split_to_map('a', '/', ':')", "{}"),
        ("split_to_map('a:1', '', ':')", "NULL"),
    ]);
}

#[test]
fn uuids() {
    let random = value("uuid()");
    assert_eq!((random.len(), &random[14..15]), (36, "4"), "{random}");
    check(&[
        (
            "uuid(to_bytes('000102030405060708090A0B0C0D0E0F', 'hex'))",
            "00010203-0405-0607-0809-0a0b0c0d0e0f",
        ),
        ("uuid(to_bytes('00', 'hex'))", "NULL"),
    ]);
}

#[test]
fn bytes() {
    let bytes = || {
        vec![column(
            "b",
            BinaryArray::from_opt_vec(vec![Some(b"abc".as_slice()), None, Some(b"")]),
        )]
    };
    assert_eq!(over(bytes(), "len(b)"), ["3", "NULL", "0"]);
    assert_eq!(
        over(bytes(), "from_bytes(substring(b, -2), 'ascii')"),
        ["bc", "NULL", ""]
    );
    assert_eq!(
        over(bytes(), "from_bytes(lpad(b, 4, b), 'utf8')"),
        ["aabc", "NULL", "NULL"]
    );
    assert_eq!(
        over(bytes(), "from_bytes(concat(b, NULL, b), 'utf8')"),
        ["abcabc", "", ""]
    );
    assert_eq!(
        over(
            bytes(),
            "from_bytes(concat_ws(to_bytes('-', 'utf8'), b, b), 'utf8')"
        ),
        ["abc-abc", "", "-"]
    );
    assert_eq!(
        over(bytes(), "array_length(split(b, to_bytes('b', 'utf8')))"),
        ["2", "NULL", "1"]
    );
    check(&[
        ("from_bytes(to_bytes('QUI', 'base64'), 'ascii')", "AB"),
        ("from_bytes(to_bytes('é', 'ascii'), 'ascii')", "?"),
        ("from_bytes(to_bytes('é', 'utf8'), 'ascii')", "��"),
        ("to_bytes('xyz', 'hex')", "NULL"),
        ("to_bytes('xyz', 'rot13')", "NULL"),
        ("encode('x', 'utf8', 'nothing')", "NULL"),
        ("encode('ab', 'utf8', 'utf8')", "ab"),
        ("encode('c3a9', 'hex', 'utf8')", "é"),
        ("encode('YWI=', 'base64', 'hex')", "6162"),
        ("int_from_bytes(to_bytes('FFFFFFFE', 'hex'))", "-2"),
        (
            "int_from_bytes(to_bytes('01000000', 'hex'), 'little_endian')",
            "1",
        ),
        ("int_from_bytes(to_bytes('01', 'hex'))", "NULL"),
        (
            "int_from_bytes(to_bytes('00000001', 'hex'), 'MIDDLE')",
            "NULL",
        ),
        (
            "bigint_from_bytes(to_bytes('0000000000000100', 'hex'))",
            "256",
        ),
        (
            "double_from_bytes(to_bytes('000000000000F03F', 'hex'), 'LITTLE_ENDIAN')",
            "1.0",
        ),
    ]);
}

#[test]
fn regular_expressions() {
    check(&[
        ("regexp_extract('[0-9]+', 'ab')", "NULL"),
        ("regexp_extract('(a)(b)?', 'a', 2)", "NULL"),
        ("regexp_extract('a', 'a', 1)", "NULL"),
        ("regexp_extract('a', NULL)", "NULL"),
        ("regexp_extract_all('(\\w)(\\w)?', 'abc', 2)", "[b, NULL]"),
        ("regexp_extract_all('x', 'abc')", "[]"),
        (
            "regexp_replace('one two', '(\\w+) (\\w+)', '$2 $1')",
            "two one",
        ),
        ("regexp_replace('one', 'o(?=n)', '')", "NULL"),
        ("regexp_replace('one', 'x', NULL)", "NULL"),
        ("regexp_split_to_array('abc', '')", "[a, b, c]"),
        ("regexp_split_to_array('a,b,', ',')", "[a, b, ]"),
    ]);
    let columns = vec![
        column("s", StringArray::from(vec!["a1", "b22", "c"])),
        column(
            "p",
            StringArray::from(vec![Some("[a-z]"), Some("(?<=b)2"), None]),
        ),
    ];
    assert_eq!(over(columns, "regexp_extract(p, s)"), ["a", "NULL", "NULL"]);
    let errors = take_row_errors();
    assert!(
        errors.reasons[0].contains("position 0: look-behind is not supported"),
        "{errors:?}"
    );
}

#[test]
fn urls() {
    check(&[
        ("url_encode_param('ä+ ')", "%C3%A4%2B+"),
        ("url_decode_param('%C3%A4+%2B')", "ä +"),
        ("url_decode_param('%4')", "NULL"),
        ("url_extract_fragment('http://a.org/b#x%20y')", "x y"),
        ("url_extract_fragment('http://a.org/b')", "NULL"),
        ("url_extract_host('a.org/b')", "NULL"),
        ("url_extract_port('http://a.org')", "NULL"),
        ("url_extract_path('http://a.org?x')", ""),
        ("url_extract_path('http://a.org/b c')", "NULL"),
        ("url_extract_protocol('//a.org')", "NULL"),
        ("url_extract_query('http://a.org/?a=1%262')", "a=1&2"),
        ("url_extract_parameter('http://a.org/?a=1&b=2&c', 'b')", "2"),
        ("url_extract_parameter('http://a.org/?a=1&b=2&c', 'c')", ""),
        ("url_extract_parameter('http://a.org/?a=1', 'z')", "NULL"),
        ("url_extract_parameter('http://a.org/', 'a')", "NULL"),
    ]);
}

#[test]
fn constants_and_columns_mix() {
    let columns = vec![
        column("s", StringArray::from(vec![Some("abc"), None, Some("xyz")])),
        column("n", Int32Array::from(vec![Some(2), Some(1), None])),
    ];
    assert_eq!(
        over(columns.clone(), "lpad(s, 5, '-')"),
        ["--abc", "NULL", "--xyz"]
    );
    assert_eq!(
        over(columns.clone(), "substring('fixed', n, n)"),
        ["ix", "f", "NULL"]
    );
    assert_eq!(
        over(columns, "elt(n, s, 'other')"),
        ["other", "NULL", "NULL"]
    );
}
