//! Distances on earth.

use arrow::{array::ArrayRef, datatypes::Float64Type};
use datafusion::common::Result;

use crate::{
    call::{Call, value},
    function::{Category, Function, Overload},
    signature::{Kind, Param, param},
};

/// Mean radius of the earth.
const EARTH_KM: f64 = 6371.0;
const EARTH_MILES: f64 = 3959.0;

const POINTS: [Param; 4] = [
    param(
        "lat1",
        Kind::Double,
        "latitude of the first point, in degrees",
    ),
    param("lon1", Kind::Double, "longitude of the first point"),
    param("lat2", Kind::Double, "latitude of the second point"),
    param("lon2", Kind::Double, "longitude of the second point"),
];

pub(super) static FUNCTIONS: &[Function] = &[Function::new(
    "geo_distance",
    Category::Geography,
    "The distance of two points along the surface of the earth, in kilometres or miles.",
    &[
        Overload::new(&POINTS, Kind::Double, distances),
        Overload::new(
            &[
                POINTS[0],
                POINTS[1],
                POINTS[2],
                POINTS[3],
                param("unit", Kind::Text, "'KM' (also when NULL) or 'MI'"),
            ],
            Kind::Double,
            distances,
        ),
    ],
    &[(
        "round(geo_distance(52.52, 13.40, 48.86, 2.35), 1)",
        "877.1e0",
    )],
)];

fn distances(call: &Call) -> Result<ArrayRef> {
    let degrees = [
        call.double(0),
        call.double(1),
        call.double(2),
        call.double(3),
    ];
    let unit = (call.count() > 4).then(|| call.text(4));
    Ok(call.numbers::<Float64Type>(|row| {
        let lat1 = latitude(value!(degrees[0].get(row)))?;
        let lon1 = longitude(value!(degrees[1].get(row)))?;
        let lat2 = latitude(value!(degrees[2].get(row)))?;
        let lon2 = longitude(value!(degrees[3].get(row)))?;
        let radius = radius(unit.and_then(|unit| unit.get(row)))?;
        let angle = (((lat2 - lat1) / 2.0).sin().powi(2)
            + ((lon2 - lon1) / 2.0).sin().powi(2) * lat1.cos() * lat2.cos())
        .sqrt()
        .asin();
        Ok(Some(radius * 2.0 * angle))
    }))
}

fn latitude(degrees: f64) -> Result<f64, String> {
    if (-90.0..=90.0).contains(&degrees) {
        Ok(degrees.to_radians())
    } else {
        Err(format!("latitude {degrees} is not within -90 and 90"))
    }
}

fn longitude(degrees: f64) -> Result<f64, String> {
    if (-180.0..=180.0).contains(&degrees) {
        Ok(degrees.to_radians())
    } else {
        Err(format!("longitude {degrees} is not within -180 and 180"))
    }
}

fn radius(unit: Option<&str>) -> Result<f64, String> {
    let Some(unit) = unit else {
        return Ok(EARTH_KM);
    };
    let is = |names: &[&str]| names.iter().any(|name| unit.eq_ignore_ascii_case(name));
    if is(&["km", "kilometer", "kilometers", "kilometre", "kilometres"]) {
        Ok(EARTH_KM)
    } else if is(&["mi", "mile", "miles"]) {
        Ok(EARTH_MILES)
    } else {
        Err(format!("\"{unit}\" is no unit of distance: use KM or MI"))
    }
}
