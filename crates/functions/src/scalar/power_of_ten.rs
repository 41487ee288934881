//! Powers of ten in the integers behind decimals.

use arrow::datatypes::ArrowNativeTypeOp;

/// Ten to the power of `exponent`; `None` when the integer is too narrow for it.
pub(super) fn power_of_ten<N: ArrowNativeTypeOp>(exponent: u32) -> Option<N> {
    let two = N::ONE.add_wrapping(N::ONE);
    let ten = two.add_wrapping(two).add_wrapping(N::ONE).mul_wrapping(two);
    ten.pow_checked(exponent).ok()
}
