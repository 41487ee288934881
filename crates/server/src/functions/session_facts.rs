//! Functions that tell a session about itself and its server, by PostgreSQL's names.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::{
    common::exec_datafusion_err,
    logical_expr::{
        ColumnarValue, ScalarFunctionImplementation, ScalarUDF, Volatility, create_udf,
    },
    scalar::ScalarValue,
};

use crate::{
    pull::{DATABASE, SCHEMA},
    session::{Session, Variables},
    sqlstate::SqlError,
};

/// What `version()` answers: drivers read the first two words.
fn version() -> String {
    format!(
        "PostgreSQL {} (Highwater {})",
        crate::session::SERVER_VERSION,
        env!("CARGO_PKG_VERSION")
    )
}

/// The functions with the session's answers in them.
pub fn functions(session: &Session) -> Vec<ScalarUDF> {
    let text = |name: &str, value: &str| constant(name, ScalarValue::from(value));
    let user = session.startup.user.as_str();
    vec![
        text("version", &version()),
        text("current_database", DATABASE),
        text("current_catalog", DATABASE),
        text("current_schema", SCHEMA),
        text("current_user", user),
        text("session_user", user),
        text("current_role", user),
        text("user", user),
        constant(
            "pg_backend_pid",
            ScalarValue::Int32(Some(session.startup.backend_pid)),
        ),
        constant("pg_is_in_recovery", ScalarValue::Boolean(Some(false))),
        current_schemas(),
        current_setting(session.variables.clone()),
    ]
}

fn constant(name: &str, value: ScalarValue) -> ScalarUDF {
    let data_type = value.data_type();
    let body: ScalarFunctionImplementation =
        Arc::new(move |_| Ok(ColumnarValue::Scalar(value.clone())));
    create_udf(name, Vec::new(), data_type, Volatility::Stable, body)
}

/// `current_schemas(include_implicit)`.
fn current_schemas() -> ScalarUDF {
    let list = ScalarValue::new_list_nullable(&[ScalarValue::from(SCHEMA)], &DataType::Utf8);
    let value = ScalarValue::List(list);
    let result = DataType::List(Arc::new(Field::new("item", DataType::Utf8, true)));
    let body: ScalarFunctionImplementation =
        Arc::new(move |_| Ok(ColumnarValue::Scalar(value.clone())));
    create_udf(
        "current_schemas",
        vec![DataType::Boolean],
        result,
        Volatility::Stable,
        body,
    )
}

/// `current_setting(name)`.
fn current_setting(variables: Variables) -> ScalarUDF {
    let body: ScalarFunctionImplementation = Arc::new(move |arguments| {
        let name = match arguments {
            [ColumnarValue::Scalar(name)] => name.try_as_str().flatten().map(str::to_owned),
            _ => None,
        };
        let name = name.ok_or_else(|| {
            exec_datafusion_err!("current_setting takes the name of one parameter")
        })?;
        let external =
            |error: SqlError| datafusion::error::DataFusionError::External(Box::new(error));
        let (_, value) = variables.show(&name).map_err(external)?;
        Ok(ColumnarValue::Scalar(ScalarValue::from(value)))
    });
    create_udf(
        "current_setting",
        vec![DataType::Utf8],
        DataType::Utf8,
        Volatility::Stable,
        body,
    )
}
