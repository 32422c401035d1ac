//! The query of movements.

use shared::http::requests::params::{Limit, PageNumber};

shared::query! {
    /// Page of movements.
    pub struct MovementQuery {
        /// Page number. Default 1.
        page: PageNumber as PageNumber,
        /// Items per page. Default 20, maximum 100.
        limit: Limit as Limit,
    }
}
