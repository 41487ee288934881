//! Forms of expressions that the standard parser does not read for PostgreSQL: constructors, struct access, lambdas.
//!
//! Each function is called with the parser at the form's first token, which the dialect has recognized by looking ahead.

use sqlparser::ast as std_ast;
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// How tightly `->` binds: tighter than a cast (140), looser than a dot (200) in PostgreSQL's operator table.
pub(super) const STRUCT_ACCESS_PRECEDENCE: u8 = 150;

/// `STRUCT(f := e, ..)`, as the standard tree's `STRUCT(e AS f, ..)`.
pub(super) fn parse_struct_constructor(parser: &mut Parser) -> Result<std_ast::Expr, ParserError> {
    parser.next_token();
    parser.expect_token(&Token::LParen)?;
    let field = |parser: &mut Parser| {
        let name = parser.parse_identifier()?;
        parser.expect_token(&Token::Assignment)?;
        Ok(std_ast::Expr::Named {
            expr: Box::new(parser.parse_expr()?),
            name,
        })
    };
    let values = match parser.peek_token_ref().token {
        Token::RParen => Vec::new(),
        _ => parser.parse_comma_separated(field)?,
    };
    parser.expect_token(&Token::RParen)?;
    Ok(std_ast::Expr::Struct {
        values,
        fields: Vec::new(),
    })
}

/// `MAP(k := v, ..)`, as the standard tree's `MAP {k: v, ..}`; `None` when the parentheses hold a call's arguments instead.
pub(super) fn parse_map_constructor(
    parser: &mut Parser,
) -> Result<Option<std_ast::Expr>, ParserError> {
    parser.maybe_parse(|parser| {
        parser.next_token();
        parser.expect_token(&Token::LParen)?;
        let entries = parser.parse_comma_separated(|parser| {
            let key = Box::new(parser.parse_expr()?);
            parser.expect_token(&Token::Assignment)?;
            Ok(std_ast::MapEntry {
                key,
                value: Box::new(parser.parse_expr()?),
            })
        })?;
        parser.expect_token(&Token::RParen)?;
        Ok(std_ast::Expr::Map(std_ast::Map { entries }))
    })
}

/// What stands behind the arrow of `a->f`: a field with the subscripts behind it, or all fields.
pub(super) fn parse_struct_access(
    parser: &mut Parser,
    container: std_ast::Expr,
) -> Result<std_ast::Expr, ParserError> {
    let field = match parser.peek_token_ref().token {
        Token::Mul => std_ast::Expr::Wildcard(AttachedToken(parser.next_token())),
        Token::Word(_) => std_ast::Expr::Identifier(parser.parse_identifier()?),
        // PostgreSQL's `->` takes text and numbers on its right, for JSON.
        _ => parser.parse_subexpr(STRUCT_ACCESS_PRECEDENCE)?,
    };
    let access = std_ast::Expr::BinaryOp {
        left: Box::new(container),
        op: std_ast::BinaryOperator::Arrow,
        right: Box::new(field),
    };
    if parser.peek_token_ref().token == Token::LBracket {
        return parser.parse_compound_expr(access, Vec::new());
    }
    Ok(access)
}

/// Parameters of a lambda. Functions give at most three, and each look at a later token costs more than the one before.
const MAX_PARAMETERS: usize = 8;

/// Whether the parser is at `(x, y, ..) =>`.
pub(super) fn opens_parameters(parser: &Parser) -> bool {
    let token = |ahead: usize| &parser.peek_nth_token_ref(ahead).token;
    let mut ahead = 1;
    while ahead < 2 * MAX_PARAMETERS && matches!(token(ahead), Token::Word(_)) {
        match token(ahead + 1) {
            Token::Comma => ahead += 2,
            Token::RParen => return *token(ahead + 2) == Token::RArrow,
            _ => return false,
        }
    }
    false
}

/// `x => e` or `(x, y, ..) => e`.
pub(super) fn parse_lambda(parser: &mut Parser) -> Result<std_ast::Expr, ParserError> {
    let parameter = |parser: &mut Parser| {
        Ok(std_ast::LambdaFunctionParameter {
            name: parser.parse_identifier()?,
            data_type: None,
        })
    };
    let params = if parser.consume_token(&Token::LParen) {
        let many = parser.parse_comma_separated(parameter)?;
        parser.expect_token(&Token::RParen)?;
        std_ast::OneOrManyWithParens::Many(many)
    } else {
        std_ast::OneOrManyWithParens::One(parameter(parser)?)
    };
    parser.expect_token(&Token::RArrow)?;
    Ok(std_ast::Expr::Lambda(std_ast::LambdaFunction {
        params,
        body: Box::new(parser.parse_expr()?),
        syntax: std_ast::LambdaSyntax::Arrow,
    }))
}
