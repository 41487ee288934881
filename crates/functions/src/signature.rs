//! Overloads, and which of them a call means.
//!
//! A parameter has a [`Kind`]; `T` and `U` stand for one type each, wherever they occur in an overload. Of the overloads that take the arguments
//! the nearest is chosen: exact types first, then numbers that widen (INT, BIGINT, DECIMAL, DOUBLE), and the first one of equals. NULL goes anywhere.

use std::fmt;

use arrow::datatypes::DataType;

use crate::types::{
    TIME, TIMESTAMP, canonical, common_type, decimal, decimal_digits, distance, element_type, list,
    map, map_types, sql_name,
};

/// The type of a parameter or result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// BOOLEAN.
    Boolean,
    /// INT.
    Int,
    /// BIGINT.
    BigInt,
    /// DOUBLE.
    Double,
    /// DECIMAL of any precision and scale.
    Decimal,
    /// VARCHAR.
    Text,
    /// BYTES.
    Bytes,
    /// DATE.
    Date,
    /// TIME.
    Time,
    /// TIMESTAMP.
    Timestamp,
    /// The first type variable.
    T,
    /// The second type variable.
    U,
    /// Any type, unrelated to others.
    Any,
    /// An array.
    Array(&'static Kind),
    /// A map.
    Map(&'static Kind, &'static Kind),
}

/// Number of type variables.
const VARIABLES: usize = 2;
/// How far a type variable is from a type: any overload that names the type is nearer.
const VARIABLE_DISTANCE: u32 = 4;

impl Kind {
    /// The one type that the kind stands for, unless it depends on the arguments.
    fn fixed(self) -> Option<DataType> {
        Some(match self {
            Self::Boolean => DataType::Boolean,
            Self::Int => DataType::Int32,
            Self::BigInt => DataType::Int64,
            Self::Double => DataType::Float64,
            Self::Text => DataType::Utf8,
            Self::Bytes => DataType::Binary,
            Self::Date => DataType::Date32,
            Self::Time => TIME,
            Self::Timestamp => TIMESTAMP,
            Self::Decimal | Self::T | Self::U | Self::Any | Self::Array(_) | Self::Map(_, _) => {
                return None;
            }
        })
    }

    fn variable(self) -> Option<usize> {
        match self {
            Self::T => Some(0),
            Self::U => Some(1),
            _ => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decimal => out.write_str("DECIMAL"),
            Self::T => out.write_str("T"),
            Self::U => out.write_str("U"),
            Self::Any => out.write_str("ANY"),
            Self::Array(element) => write!(out, "ARRAY<{element}>"),
            Self::Map(key, value) => write!(out, "MAP<{key}, {value}>"),
            other => match other.fixed() {
                Some(data_type) => out.write_str(&sql_name(&data_type)),
                None => Ok(()),
            },
        }
    }
}

/// A parameter of an overload.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// Its name in the documentation.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What it means.
    pub description: &'static str,
}

/// A parameter.
pub(crate) const fn param(name: &'static str, kind: Kind, description: &'static str) -> Param {
    Param {
        name,
        kind,
        description,
    }
}

/// The parameters of an overload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Params {
    pub list: &'static [Param],
    /// The last one may be given any number of times, but at least once.
    pub variadic: bool,
}

impl Params {
    /// The parameter that an argument is for.
    fn at(&self, argument: usize) -> Option<&Param> {
        match self.variadic {
            true => self.list.get(argument).or(self.list.last()),
            false => self.list.get(argument),
        }
    }

    fn takes(&self, arguments: usize) -> bool {
        match self.variadic {
            true => arguments >= self.list.len(),
            false => arguments == self.list.len(),
        }
    }

    /// The types that the arguments are brought to, and how far they are from it; `None` when the overload does not take them.
    pub fn resolve(&self, arguments: &[DataType]) -> Option<Resolved> {
        if !self.takes(arguments.len()) {
            return None;
        }
        let mut resolved = Resolved {
            types: Vec::with_capacity(arguments.len()),
            variables: [const { None }; VARIABLES],
            distance: 0,
        };
        let canonical: Vec<DataType> = arguments.iter().map(canonical).collect();
        for (position, argument) in canonical.iter().enumerate() {
            let kind = self.at(position)?.kind;
            resolved.distance += resolved.unify(kind, argument)?;
        }
        for (position, argument) in canonical.iter().enumerate() {
            let kind = self.at(position)?.kind;
            let data_type = resolved.substitute(kind, argument)?;
            resolved.types.push(data_type);
        }
        Some(resolved)
    }
}

/// An overload with the types of one call.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// The type of each argument.
    pub types: Vec<DataType>,
    variables: [Option<DataType>; VARIABLES],
    /// How far the call is from the overload.
    pub distance: u32,
}

impl Resolved {
    /// The type that a result of `kind` has.
    pub fn result(&self, kind: Kind) -> Option<DataType> {
        self.substitute(kind, &DataType::Null)
    }

    /// Matches an argument with a kind and notes what type variables must hold.
    fn unify(&mut self, kind: Kind, argument: &DataType) -> Option<u32> {
        if *argument == DataType::Null {
            return Some(0);
        }
        if let Some(variable) = kind.variable() {
            let slot = &mut self.variables[variable];
            *slot = Some(match slot.take() {
                None => argument.clone(),
                Some(known) => common_type(&known, argument)?,
            });
            return Some(VARIABLE_DISTANCE);
        }
        match kind {
            Kind::Any => Some(VARIABLE_DISTANCE),
            Kind::Array(element) => self.unify(*element, element_type(argument)?),
            Kind::Map(key, value) => {
                let (argument_key, argument_value) = map_types(argument)?;
                Some(self.unify(*key, argument_key)? + self.unify(*value, argument_value)?)
            }
            Kind::Decimal => {
                let (precision, scale) = decimal_digits(argument)?;
                distance(argument, &decimal(precision, scale)?)
            }
            fixed => distance(argument, &fixed.fixed()?),
        }
    }

    /// The type of an argument of `kind`. A variable that no argument tells has none, except inside of an array or map.
    fn substitute(&self, kind: Kind, argument: &DataType) -> Option<DataType> {
        let part = |kind: Kind, argument: &DataType| match kind.variable() {
            Some(variable) => Some(self.variables[variable].clone().unwrap_or(DataType::Utf8)),
            None => self.substitute(kind, argument),
        };
        match kind {
            Kind::T | Kind::U => self.variables[kind.variable()?].clone(),
            Kind::Any => Some(argument.clone()),
            Kind::Array(element) => {
                let inner = element_type(argument).unwrap_or(&DataType::Null);
                Some(list(part(*element, inner)?))
            }
            Kind::Map(key, value) => {
                let (inner_key, inner_value) =
                    map_types(argument).unwrap_or((&DataType::Null, &DataType::Null));
                Some(map(part(*key, inner_key)?, part(*value, inner_value)?))
            }
            Kind::Decimal => {
                let (precision, scale) = decimal_digits(argument).unwrap_or((1, 0));
                decimal(precision, scale)
            }
            fixed => fixed.fixed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn params(list: &'static [Param], variadic: bool) -> Params {
        Params { list, variadic }
    }

    #[test]
    fn a_variable_is_one_type() {
        const CONTAINS: Params = params(
            &[
                param("array", Kind::Array(&Kind::T), ""),
                param("value", Kind::T, ""),
            ],
            false,
        );
        let types =
            |arguments: &[DataType]| CONTAINS.resolve(arguments).map(|resolved| resolved.types);
        assert_eq!(
            types(&[list(DataType::Int32), DataType::Int64]),
            Some(vec![list(DataType::Int64), DataType::Int64])
        );
        assert_eq!(
            types(&[list(DataType::Utf8View), DataType::Null]),
            Some(vec![list(DataType::Utf8), DataType::Utf8])
        );
        assert_eq!(types(&[list(DataType::Utf8), DataType::Int64]), None);
        assert_eq!(types(&[DataType::Utf8, DataType::Utf8]), None);
        assert_eq!(types(&[list(DataType::Utf8)]), None);
    }

    #[test]
    fn variadic_parameters_repeat() {
        const JOIN: Params = params(
            &[param("text", Kind::Text, ""), param("more", Kind::T, "")],
            true,
        );
        assert!(JOIN.resolve(&[DataType::Utf8]).is_none());
        let resolved = JOIN
            .resolve(&[
                DataType::Utf8,
                DataType::Int32,
                DataType::Null,
                DataType::Float64,
            ])
            .unwrap();
        assert_eq!(resolved.types[1..], [const { DataType::Float64 }; 3]);
        assert!(
            JOIN.resolve(&[DataType::Utf8, DataType::Null]).is_none(),
            "no argument tells T"
        );
    }
}
