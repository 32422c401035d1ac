//! What lists need of users, runs and movements.

use super::index::{Columns, Inconsistent, id_of, read};
use super::segment::Row;
use crate::domain::instance::{Instance, InstanceStatus};
use crate::domain::movement::Movement;
use crate::domain::scope::Role;
use crate::domain::text::fold;
use crate::domain::user::User;
use uuid::Uuid;

/// Of a user, beside name and address.
#[derive(Debug, Clone, Copy, Default)]
pub struct UserColumns {
    pub role: Option<Role>,
    pub is_active: bool,
}

impl Columns for UserColumns {
    type Of = User;
    const TEXTS: (usize, usize) = (2, 0);

    fn set(card: &mut Row<Self>, field: &str, value: Option<&str>) -> Result<(), Inconsistent> {
        match (field, value) {
            ("role", Some(word)) => card.facts.role = Some(read(word)?),
            ("is_active", Some(flag)) => card.facts.is_active = read(flag)?,
            ("display_name", Some(name)) => set_text(&mut card.searched, 0, fold(name)),
            ("email", Some(email)) => set_text(&mut card.searched, 1, fold(email)),
            _ => {}
        }
        Ok(())
    }
}

/// Of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct InstanceColumns {
    pub status: Option<InstanceStatus>,
    pub asset: Option<Uuid>,
    pub process: Option<Uuid>,
}

impl Columns for InstanceColumns {
    type Of = Instance;
    const TEXTS: (usize, usize) = (0, 0);

    fn set(card: &mut Row<Self>, field: &str, value: Option<&str>) -> Result<(), Inconsistent> {
        match (field, value) {
            ("status", Some(word)) => card.facts.status = Some(read(word)?),
            ("asset_id", Some(id)) => card.facts.asset = Some(id_of(id)?),
            ("process_id", Some(id)) => card.facts.process = Some(id_of(id)?),
            _ => {}
        }
        Ok(())
    }
}

/// Of a movement: that it is there.
#[derive(Debug, Clone, Copy, Default)]
pub struct MovementColumns;

impl Columns for MovementColumns {
    type Of = Movement;
    const TEXTS: (usize, usize) = (0, 0);

    fn set(_: &mut Row<Self>, _: &str, _: Option<&str>) -> Result<(), Inconsistent> {
        Ok(())
    }
}

/// Replaces one of a card's texts.
pub fn set_text(texts: &mut [String], place: usize, text: String) {
    if let Some(present) = texts.get_mut(place) {
        *present = text;
    }
}
