//! What can be done to a table as a whole: each file is the plot of one operation, told with the rooms for planning,
//! reading, writing and committing.

pub mod append;
pub mod create;
