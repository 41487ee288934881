//! A function: its documentation, its overloads, and how DataFusion calls it.
//!
//! Functions are constants in tables, one table a family. DataFusion asks twice which overload a call means: when it coerces types and when
//! a batch is evaluated; the answer depends on the types alone, so it is the same both times.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef},
    compute::cast,
    datatypes::{DataType, Field, FieldRef},
};
use datafusion::{
    common::{Result, ScalarValue, internal_err, plan_err},
    logical_expr::{
        ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
    },
};

use crate::{
    call::{Arg, Call},
    signature::{Kind, Param, Params, Resolved},
    types::sql_name,
};

/// What a function is about; SHOW FUNCTIONS lists by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// Numbers.
    Math,
    /// Choosing between values.
    Conditional,
    /// Text.
    String,
    /// Regular expressions.
    Regex,
    /// Bytes.
    Bytes,
    /// JSON in text.
    Json,
    /// URLs.
    Url,
    /// Dates and times.
    DateTime,
    /// Arrays.
    Array,
    /// Maps.
    Map,
    /// Functions that take a lambda.
    Lambda,
    /// Places on earth.
    Geography,
    /// Keys of records.
    Key,
    /// Several rows to one.
    Aggregate,
    /// One row to several.
    Table,
}

impl Category {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Math => "MATHEMATICAL",
            Self::Conditional => "CONDITIONAL",
            Self::String => "STRING",
            Self::Regex => "REGULAR EXPRESSION",
            Self::Bytes => "BYTES",
            Self::Json => "JSON",
            Self::Url => "URL",
            Self::DateTime => "DATE / TIME",
            Self::Array => "ARRAY",
            Self::Map => "MAP",
            Self::Lambda => "LAMBDA",
            Self::Geography => "GEOGRAPHY",
            Self::Key => "KEY",
            Self::Aggregate => "AGGREGATE",
            Self::Table => "TABLE",
        }
    }
}

/// The type of an overload's result.
#[derive(Clone, Copy)]
pub(crate) enum Returns {
    /// A kind over the overload's type variables.
    Kind(Kind),
    /// The type of an argument.
    Argument(usize),
    /// Computed from the arguments' types.
    Computed(fn(&[DataType]) -> Option<DataType>, Kind),
}

/// One way to call a function.
#[derive(Clone, Copy)]
pub(crate) struct Overload {
    pub params: Params,
    pub returns: Returns,
    run: fn(&Call) -> Result<ArrayRef>,
}

impl Overload {
    /// Takes exactly `params`.
    pub const fn new(
        params: &'static [Param],
        returns: Kind,
        run: fn(&Call) -> Result<ArrayRef>,
    ) -> Self {
        Self {
            params: Params {
                list: params,
                variadic: false,
            },
            returns: Returns::Kind(returns),
            run,
        }
    }

    /// The last parameter may be given several times.
    pub const fn variadic(mut self) -> Self {
        self.params.variadic = true;
        self
    }

    /// The result has another type than its kind says.
    pub const fn returning(mut self, returns: Returns) -> Self {
        self.returns = returns;
        self
    }

    fn result_type(&self, resolved: &Resolved) -> Option<DataType> {
        match self.returns {
            Returns::Kind(kind) => resolved.result(kind),
            Returns::Argument(position) => resolved.types.get(position).cloned(),
            Returns::Computed(compute, _) => compute(&resolved.types),
        }
    }

    /// The kind of the result, for the documentation.
    pub fn result_kind(&self) -> Kind {
        match self.returns {
            Returns::Kind(kind) | Returns::Computed(_, kind) => kind,
            Returns::Argument(position) => self
                .params
                .list
                .get(position)
                .map_or(Kind::Any, |param| param.kind),
        }
    }
}

/// A scalar function.
#[derive(Clone, Copy)]
pub(crate) struct Function {
    pub name: &'static str,
    pub category: Category,
    pub description: &'static str,
    /// Calls and what they give, both as SQL.
    pub examples: &'static [(&'static str, &'static str)],
    pub overloads: &'static [Overload],
    /// Only the ksql dialect has it: PostgreSQL or DataFusion mean something else by the name.
    pub ksql_only: bool,
    /// It reads the step's clock or seed.
    pub reads_step: bool,
}

impl Function {
    /// A function of both dialects whose value depends on its arguments alone.
    pub const fn new(
        name: &'static str,
        category: Category,
        description: &'static str,
        overloads: &'static [Overload],
        examples: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self {
            name,
            category,
            description,
            examples,
            overloads,
            ksql_only: false,
            reads_step: false,
        }
    }

    /// Leaves the name to PostgreSQL's function in the postgres dialect.
    pub const fn ksql_only(mut self) -> Self {
        self.ksql_only = true;
        self
    }

    /// Marks a function of the step's clock or seed.
    pub const fn reading_step(mut self) -> Self {
        self.reads_step = true;
        self
    }

    /// The overload that takes these types.
    fn overload(&self, arguments: &[DataType]) -> Result<(&'static Overload, Resolved)> {
        let mut best: Option<(&Overload, Resolved)> = None;
        for overload in self.overloads {
            if let Some(resolved) = overload.params.resolve(arguments)
                && best
                    .as_ref()
                    .is_none_or(|(_, best)| resolved.distance < best.distance)
            {
                best = Some((overload, resolved));
            }
        }
        match best {
            Some(best) => Ok(best),
            None => plan_err!("{}", self.refusal(arguments)),
        }
    }

    fn refusal(&self, arguments: &[DataType]) -> String {
        let given: Vec<String> = arguments.iter().map(sql_name).collect();
        let forms: Vec<String> = self
            .overloads
            .iter()
            .map(|overload| crate::doc::form(self.name, &overload.params))
            .collect();
        format!(
            "function {} does not accept parameters ({}); it can be called as {}",
            self.name,
            given.join(", "),
            forms.join(" or ")
        )
    }
}

/// A [`Function`] as DataFusion sees it. Two of one name are the same function: names are unique in the tables.
#[derive(Clone)]
pub(crate) struct Udf {
    pub function: &'static Function,
    signature: Signature,
}

impl Udf {
    pub fn new(function: &'static Function) -> Self {
        let volatility = match function.reads_step {
            true => Volatility::Volatile,
            false => Volatility::Immutable,
        };
        Self {
            function,
            signature: Signature::user_defined(volatility),
        }
    }
}

impl std::fmt::Debug for Udf {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Udf").field(&self.function.name).finish()
    }
}

impl PartialEq for Udf {
    fn eq(&self, other: &Self) -> bool {
        self.function.name == other.function.name
    }
}

impl Eq for Udf {}

impl std::hash::Hash for Udf {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.function.name.hash(state);
    }
}

impl ScalarUDFImpl for Udf {
    fn name(&self) -> &str {
        self.function.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        Ok(self.function.overload(arguments)?.1.types)
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let (overload, resolved) = self.function.overload(arguments)?;
        match overload.result_type(&resolved) {
            Some(data_type) => Ok(data_type),
            None => plan_err!("{}", self.function.refusal(arguments)),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> = args
            .arg_fields
            .iter()
            .map(|field| field.data_type().clone())
            .collect();
        // Any row may be one that the function cannot serve.
        Ok(Arc::new(Field::new(
            self.name(),
            self.return_type(&types)?,
            true,
        )))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let types: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        let (overload, resolved) = self.function.overload(&types)?;
        let constant = !args.args.is_empty()
            && args
                .args
                .iter()
                .all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let arguments = args
            .args
            .into_iter()
            .zip(&resolved.types)
            .map(|(value, data_type)| argument(value, data_type))
            .collect::<Result<Vec<_>>>()?;
        let rows = if constant { 1 } else { args.number_rows };
        let call = Call::new(arguments, rows, args.return_field.data_type());
        let array = (overload.run)(&call)?;
        if array.len() != rows {
            return internal_err!("{} gave {} rows for {rows}", self.name(), array.len());
        }
        Ok(if constant && !self.function.reads_step {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)
        } else {
            ColumnarValue::Array(array)
        })
    }
}

/// An argument in the type that the overload works on.
fn argument(value: ColumnarValue, data_type: &DataType) -> Result<Arg> {
    let (array, constant) = match value {
        ColumnarValue::Array(array) => (array, false),
        ColumnarValue::Scalar(scalar) => (scalar.to_array()?, true),
    };
    let array = if array.data_type() == data_type {
        array
    } else {
        cast(&array, data_type)?
    };
    Ok(Arg { array, constant })
}
