//! How the standard parser reads the standard parts: as PostgreSQL, with ksqlDB's struct access and constructors.
//!
//! Differences from PostgreSQL:
//! - `` `x` `` is a quoted name like `"x"`;
//! - `a->b` reaches into a struct and binds as tightly as a dot, so `a->b + 1` is `(a->b) + 1`, `a->b::int` casts the field and `a->b[1]`
//!   takes the field's first element; `a->*` stands for all fields;
//! - `x => e` and `(x, y) => e` are lambdas, not arguments by name, which are written `x := e`;
//! - `STRUCT(f := e, ..)` and `MAP(k := v, ..)` build a struct and a map;
//! - types in a cast may be ksqlDB's: `MAP<K, V>`, `STRUCT<f T, ..>`;
//! - in ksqlDB's dialect, `@` may be part of a name and a digit may begin one;
//! - a sign in front of a sign keeps brackets between them, since `- - a` cannot be written without;
//! - an empty select list and the factorial operator are refused.
//!
//! The dialect also meters the parser. The standard parser tries alternatives and goes back, which nested input can turn into
//! exponential time; every expression and every alias is paid for from [`Fuel`], and once it is used up the parse fails.

mod forms;

use std::any::TypeId;
use std::cell::Cell;

use sqlparser::ast as std_ast;
use sqlparser::dialect::{Dialect as StandardDialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, Word};

use self::forms::STRUCT_ACCESS_PRECEDENCE;
use crate::language::Dialect;

/// Steps of work allowed for each token. An ordinary query takes one to three.
const FUEL_PER_TOKEN: u64 = 50;

/// Steps allowed however short the text, so that small nested queries never run out.
const FUEL_FLOOR: u64 = 20_000;

/// Words that are never the start of an operand.
const NEVER_OPERANDS: &[&str] = &[
    "and",
    "as",
    "else",
    "end",
    "except",
    "from",
    "group",
    "having",
    "intersect",
    "into",
    "join",
    "limit",
    "on",
    "or",
    "order",
    "then",
    "union",
    "using",
    "when",
    "where",
];

/// Words that PostgreSQL gives a meaning to in an expression and ksqlDB does not, unless a bracket or BY follows.
const NAMES_IN_KSQL: &[&str] = &["array", "order", "session_user", "struct", "user"];

/// A parse's budget of work.
#[derive(Debug)]
struct Fuel(Cell<u64>);

impl Fuel {
    /// Takes one step; false once nothing is left.
    fn burn(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left > 0
    }
}

/// The dialect of one parse.
#[derive(Debug)]
pub(crate) struct HighwaterDialect {
    postgres: PostgreSqlDialect,
    dialect: Dialect,
    fuel: Fuel,
}

impl HighwaterDialect {
    /// A dialect with the budget for a text of so many tokens.
    pub fn new(dialect: Dialect, count: usize) -> Self {
        let fuel = (count as u64)
            .saturating_mul(FUEL_PER_TOKEN)
            .saturating_add(FUEL_FLOOR);
        Self {
            postgres: PostgreSqlDialect {},
            dialect,
            fuel: Fuel(Cell::new(fuel)),
        }
    }

    /// Whether the budget was used up, in which case the parse failed for that reason and no other.
    pub fn is_exhausted(&self) -> bool {
        self.fuel.0.get() == 0
    }
}

impl HighwaterDialect {
    /// Whether names are ksqlDB's.
    fn is_ksql(&self) -> bool {
        self.dialect == Dialect::Ksql
    }

    /// What stands behind `a IS [NOT] DISTINCT FROM`: the standard parser would take all of `b OR c` for the right side; it is an operand
    /// like that of `=`.
    fn parse_distinct(
        &self,
        parser: &mut Parser,
        left: std_ast::Expr,
        equal: bool,
    ) -> Result<std_ast::Expr, ParserError> {
        let left = Box::new(left);
        let right = Box::new(parser.parse_subexpr(self.prec_value(Precedence::Is))?);
        Ok(match equal {
            true => std_ast::Expr::IsNotDistinctFrom(left, right),
            false => std_ast::Expr::IsDistinctFrom(left, right),
        })
    }

    /// A sign whose operand begins with a sign: the operand is put in brackets. `--a` would be a comment when written back, and `~-a`
    /// an operator of its own.
    fn parse_signs(&self, parser: &mut Parser) -> Result<std_ast::Expr, ParserError> {
        let Some((op, precedence)) = sign(&parser.next_token().token) else {
            return Err(ParserError::ParserError("expected an operator".to_string()));
        };
        let operand = parser.parse_subexpr(self.prec_value(precedence))?;
        let expr = Box::new(std_ast::Expr::Nested(Box::new(operand)));
        Ok(std_ast::Expr::UnaryOp { op, expr })
    }
}

impl StandardDialect for HighwaterDialect {
    /// Passes as PostgreSQL where the standard parser asks for a dialect by type.
    fn dialect(&self) -> TypeId {
        TypeId::of::<PostgreSqlDialect>()
    }

    fn identifier_quote_style(&self, _identifier: &str) -> Option<char> {
        Some('"')
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        matches!(ch, '"' | '`')
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        self.postgres.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        self.postgres.is_identifier_part(ch) || (ch == '@' && self.is_ksql())
    }

    fn supports_numeric_prefix(&self) -> bool {
        self.is_ksql()
    }

    /// ksqlDB's operators are a fixed few, and any two of them may stand side by side.
    fn is_custom_operator_part(&self, ch: char) -> bool {
        !self.is_ksql() && ch != '`' && self.postgres.is_custom_operator_part(ch)
    }

    fn is_reserved_for_identifier(&self, kw: Keyword) -> bool {
        self.postgres.is_reserved_for_identifier(kw)
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<std_ast::Expr, ParserError>> {
        if !self.fuel.burn() {
            return Some(Err(ParserError::RecursionLimitExceeded));
        }
        if self.is_ksql() && is_name_in_ksql(parser) {
            return Some(parser.parse_identifier().map(std_ast::Expr::Identifier));
        }
        match parser.peek_tokens_ref::<4>().map(|token| &token.token) {
            [first, second, ..] if is_sign(first) && is_sign(second) => {
                Some(self.parse_signs(parser))
            }
            // Most words can be names to the standard parser, and `a + FROM s` would add a column called "from".
            [Token::Word(word), ..] if NEVER_OPERANDS.iter().any(|name| is_bare(word, name)) => {
                Some(parser.expected("an expression", parser.peek_token()))
            }
            [
                Token::Word(name),
                Token::LParen,
                Token::Word(_),
                Token::Assignment,
            ] if is_bare(name, "struct") => Some(forms::parse_struct_constructor(parser)),
            [Token::Word(name), Token::LParen, Token::RParen, ..] if is_bare(name, "struct") => {
                Some(forms::parse_struct_constructor(parser))
            }
            [Token::Word(name), Token::LParen, ..] if is_bare(name, "map") => {
                forms::parse_map_constructor(parser).transpose()
            }
            [Token::Word(_), Token::RArrow, ..] => Some(forms::parse_lambda(parser)),
            [
                Token::LParen,
                Token::Word(_),
                Token::Comma | Token::RParen,
                ..,
            ] if forms::opens_parameters(parser) => Some(forms::parse_lambda(parser)),
            _ => None,
        }
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        match parser.peek_token_ref().token {
            Token::Arrow => Some(Ok(STRUCT_ACCESS_PRECEDENCE)),
            // Separates a name from its value in a constructor; never an infix.
            Token::Assignment => Some(Ok(self.prec_unknown())),
            _ => self.postgres.get_next_precedence(parser),
        }
    }

    fn parse_infix(
        &self,
        parser: &mut Parser,
        expr: &std_ast::Expr,
        _precedence: u8,
    ) -> Option<Result<std_ast::Expr, ParserError>> {
        if parser.consume_token(&Token::Arrow) {
            return Some(forms::parse_struct_access(parser, expr.clone()));
        }
        let equal =
            parser.parse_keywords(&[Keyword::IS, Keyword::NOT, Keyword::DISTINCT, Keyword::FROM]);
        if equal || parser.parse_keywords(&[Keyword::IS, Keyword::DISTINCT, Keyword::FROM]) {
            return Some(self.parse_distinct(parser, expr.clone(), equal));
        }
        None
    }

    fn prec_value(&self, prec: Precedence) -> u8 {
        self.postgres.prec_value(prec)
    }

    /// Also the meter for nested `FROM ((SELECT * FROM ((SELECT * ..`, which holds no expression to charge for. A bare word cannot
    /// report a failure, so an exhausted parse runs out of tokens instead.
    fn is_select_item_alias(&self, explicit: bool, kw: &Keyword, parser: &mut Parser) -> bool {
        if !self.fuel.burn() {
            while parser.next_token().token != Token::EOF {}
            return false;
        }
        explicit || self.is_column_alias(kw, parser)
    }

    fn supports_unicode_string_literal(&self) -> bool {
        true
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }

    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn allow_extract_custom(&self) -> bool {
        true
    }

    fn allow_extract_single_quotes(&self) -> bool {
        true
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }

    fn supports_named_fn_args_with_colon_operator(&self) -> bool {
        true
    }

    fn supports_named_fn_args_with_assignment_operator(&self) -> bool {
        true
    }

    fn supports_nested_comments(&self) -> bool {
        true
    }

    fn supports_string_escape_constant(&self) -> bool {
        true
    }

    fn supports_numeric_literal_underscores(&self) -> bool {
        true
    }

    fn supports_array_typedef_with_brackets(&self) -> bool {
        true
    }

    fn supports_notnull_operator(&self) -> bool {
        true
    }

    fn supports_interval_options(&self) -> bool {
        true
    }

    fn supports_select_wildcard_with_alias(&self) -> bool {
        true
    }

    fn supports_comma_separated_trim(&self) -> bool {
        true
    }

    fn supports_struct_literal(&self) -> bool {
        true
    }

    fn support_map_literal_syntax(&self) -> bool {
        true
    }

    fn supports_map_literal_with_angle_brackets(&self) -> bool {
        true
    }

    /// `x => e` is a lambda.
    fn supports_named_fn_args_with_rarrow_operator(&self) -> bool {
        false
    }
}

/// Whether this token in front of an operand is an operator made of symbols.
fn is_sign(token: &Token) -> bool {
    sign(token).is_some()
}

/// The prefix operator that a token stands for, and how tightly it binds.
fn sign(token: &Token) -> Option<(std_ast::UnaryOperator, Precedence)> {
    match token {
        Token::Minus => Some((std_ast::UnaryOperator::Minus, Precedence::MulDivModOp)),
        Token::Plus => Some((std_ast::UnaryOperator::Plus, Precedence::MulDivModOp)),
        Token::Tilde => Some((std_ast::UnaryOperator::BitwiseNot, Precedence::PlusMinus)),
        Token::AtSign => Some((std_ast::UnaryOperator::PGAbs, Precedence::PlusMinus)),
        Token::PGSquareRoot => Some((std_ast::UnaryOperator::PGSquareRoot, Precedence::PlusMinus)),
        Token::PGCubeRoot => Some((std_ast::UnaryOperator::PGCubeRoot, Precedence::PlusMinus)),
        _ => None,
    }
}

/// Whether the parser is at an operand that is a name in ksqlDB's dialect only.
fn is_name_in_ksql(parser: &Parser) -> bool {
    let [first, second] = parser.peek_tokens_ref::<2>().map(|token| &token.token);
    let is_name = |word: &Word| NAMES_IN_KSQL.iter().any(|name| is_bare(word, name));
    matches!(first, Token::Word(word) if is_name(word))
        && match second {
            Token::LParen | Token::LBracket | Token::Lt => false,
            Token::Word(word) => !is_bare(word, "by"),
            _ => true,
        }
}

/// Whether `word` is `name` without quotes.
fn is_bare(word: &Word, name: &str) -> bool {
    word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name)
}
