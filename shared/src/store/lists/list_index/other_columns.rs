//! The columns of users, process instances and movements.

use super::blocks::{Decoder, Encoder};
use super::change_event::Inconsistent;
use super::columns::{parse, parse_id};
use super::rows::{Columns, Facet, Row, TextColumns};
use crate::domain::keys::scope::Role;
use crate::domain::processes::instance::{Instance, InstanceStatus};
use crate::domain::processes::movement::Movement;
use crate::domain::user::User;
use crate::domain::values::text::fold;
use crate::store::keys::Section;
use uuid::Uuid;

/// The values by which lists of users filter, besides the searched name and address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct UserFacet {
    pub role: Option<Role>,
    pub is_active: bool,
}

impl Facet for UserFacet {
    fn encode(&self, encoder: &mut Encoder) {
        let Self { role, is_active } = *self;
        encoder.text(role.map_or("", Role::as_str));
        encoder.byte(is_active.into());
    }

    fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        Some(Self { role: decoder.parsed()?, is_active: decoder.flag()? })
    }
}

/// Nothing: users differ in their texts and facets.
#[derive(Debug, Clone, Default)]
pub struct UserColumns;

impl Columns for UserColumns {
    type Record = User;
    type Facet = UserFacet;
    const SECTIONS: &'static [Section] = &[Section::Users];
    const TEXT_COLUMNS: TextColumns = TextColumns { searched: 2, exact: 0 };

    fn set_field(row: &mut Row<Self>, field: &str, value: Option<&str>) -> Result<(), Inconsistent> {
        match (field, value) {
            ("role", Some(role)) => row.facet.role = Some(parse(role)?),
            ("is_active", Some(flag)) => row.facet.is_active = parse(flag)?,
            ("display_name", Some(name)) => set_text(&mut row.searched, 0, fold(name)),
            ("email", Some(email)) => set_text(&mut row.searched, 1, fold(email)),
            _ => {}
        }
        Ok(())
    }

    fn encode(&self, _: &mut Encoder) {}

    fn decode(_: &mut Decoder<'_>) -> Option<Self> {
        Some(Self)
    }
}

/// The values by which lists of process instances filter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct InstanceFacet {
    pub status: Option<InstanceStatus>,
    pub process: Option<Uuid>,
}

impl Facet for InstanceFacet {
    fn encode(&self, encoder: &mut Encoder) {
        let Self { status, process } = *self;
        encoder.text(status.map_or("", InstanceStatus::as_str));
        encoder.option(process, Encoder::id);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        Some(Self { status: decoder.parsed()?, process: decoder.option(Decoder::id)? })
    }
}

#[derive(Debug, Clone, Default)]
pub struct InstanceColumns {
    pub asset: Option<Uuid>,
}

impl Columns for InstanceColumns {
    type Record = Instance;
    type Facet = InstanceFacet;
    const SECTIONS: &'static [Section] = &[Section::OpenInstances, Section::EndedInstances];
    const TEXT_COLUMNS: TextColumns = TextColumns { searched: 0, exact: 0 };

    fn set_field(row: &mut Row<Self>, field: &str, value: Option<&str>) -> Result<(), Inconsistent> {
        match (field, value) {
            ("status", Some(status)) => row.facet.status = Some(parse(status)?),
            ("asset_id", Some(id)) => row.columns.asset = Some(parse_id(id)?),
            ("process_id", Some(id)) => row.facet.process = Some(parse_id(id)?),
            _ => {}
        }
        Ok(())
    }

    fn encode(&self, encoder: &mut Encoder) {
        encoder.option(self.asset, Encoder::id);
    }

    fn decode(decoder: &mut Decoder<'_>) -> Option<Self> {
        Some(Self { asset: decoder.option(Decoder::id)? })
    }
}

/// Nothing: lists of movements have no filters.
#[derive(Debug, Clone, Default)]
pub struct MovementColumns;

impl Facet for () {
    fn encode(&self, _: &mut Encoder) {}

    fn decode(_: &mut Decoder<'_>) -> Option<Self> {
        Some(())
    }
}

impl Columns for MovementColumns {
    type Record = Movement;
    type Facet = ();
    const SECTIONS: &'static [Section] = &[Section::Movements];
    const TEXT_COLUMNS: TextColumns = TextColumns { searched: 0, exact: 0 };

    fn set_field(_: &mut Row<Self>, _: &str, _: Option<&str>) -> Result<(), Inconsistent> {
        Ok(())
    }

    fn encode(&self, _: &mut Encoder) {}

    fn decode(_: &mut Decoder<'_>) -> Option<Self> {
        Some(Self)
    }
}

pub fn set_text(texts: &mut [String], column: usize, text: String) {
    if let Some(present) = texts.get_mut(column) {
        *present = text;
    }
}
