//! Arrays by group number, as long as there are numbers.

/// Makes an array as long as there are groups. One that becomes shorter gives its memory back.
pub fn fit<T: Default>(array: &mut Vec<T>, groups: usize) {
    let shorter = groups < array.len();
    array.resize_with(groups, T::default);
    if shorter {
        array.shrink_to_fit();
    }
}

/// Moves what is at one number to another, where nothing is.
pub fn renumber<T: Default>(array: &mut [T], from: u32, to: u32) {
    array[to as usize] = std::mem::take(&mut array[from as usize]);
}
