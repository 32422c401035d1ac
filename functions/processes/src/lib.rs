//! `/v1/processes` and `/v1/movements`: process definitions, process instances and movements.

mod commands;
mod definition_wire;
mod definitions;
mod instance_wire;
mod instances;
mod movement_commands;
mod movement_start;
mod movements;
mod process_error;
mod receipt_page;
mod receipts;
mod views;

shared::endpoints! {
    definitions: list_processes, create_process, get_process, update_process, delete_process;
    instances: start_process, list_instances, get_instance, advance_instance, cancel_instance, get_signature, get_instance_history;
    receipts: get_receipt;
    movements: list_movements, get_movement, advance_movement, cancel_movement;
}
