//! `/v1/processes` and `/v1/movements`: definitions of lifecycle processes and their runs (interface 4.6 to 4.9, contract 7).

mod definition_wire;
mod definitions;
mod instance_wire;
mod instances;
mod movement_work;
mod movements;
mod receipt_page;
mod receipts;
mod views;
mod work;

use shared::app::App;
use utoipa_axum::{router::OpenApiRouter, routes};

/// The routes of this function.
#[must_use]
pub fn routes() -> OpenApiRouter<App> {
    let routes = OpenApiRouter::new()
        .routes(routes!(definitions::list_processes, definitions::create_process))
        .routes(routes!(definitions::get_process, definitions::update_process, definitions::delete_process))
        .routes(routes!(instances::start_process))
        .routes(routes!(instances::list_instances))
        .routes(routes!(instances::get_instance))
        .routes(routes!(instances::advance_instance))
        .routes(routes!(instances::cancel_instance))
        .routes(routes!(instances::get_signature))
        .routes(routes!(instances::get_instance_history))
        .routes(routes!(receipts::get_receipt))
        .routes(routes!(movements::list_movements))
        .routes(routes!(movements::get_movement))
        .routes(routes!(movements::advance_movement))
        .routes(routes!(movements::cancel_movement));
    OpenApiRouter::new().nest("/v1", routes)
}
