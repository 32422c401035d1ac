//! `/v1/processes` and `/v1/movements`: definitions of lifecycle processes and their runs (interface 4.6 to 4.9, contract 7).

mod commands;
mod definition_wire;
mod definitions;
mod instance_wire;
mod instances;
mod movement_commands;
mod movements;
mod receipt_page;
mod receipts;
mod views;

shared::endpoints! {
    definitions: list_processes, create_process, get_process, update_process, delete_process;
    instances: start_process, list_instances, get_instance, advance_instance, cancel_instance, get_signature, get_instance_history;
    receipts: get_receipt;
    movements: list_movements, get_movement, advance_movement, cancel_movement;
}
