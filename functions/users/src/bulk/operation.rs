//! One change of a user: of a request of its own, or among several.

use super::users_in_bulk::UsersInBulk;
use crate::wire::UserView;
use serde_json::json;
use shared::auth::{Caller, Command, Operation, Principal};
use shared::domain::keys::scope::Role;
use shared::domain::record::{Kind, Record, Stored};
use shared::domain::request::{ExpectedVersions, StoredResponse};
use shared::domain::user::{Email, User, UserChange};
use shared::domain::values::field_error::FieldError;
use shared::domain::values::id::{Id, UserId};
use shared::http::bulk::import::{RowChanges, RowResult};
use shared::http::error::{ApiError, ConflictCode};
use shared::http::requests::body::ReadOnlyFields;
use shared::http::responses::{Created, Data, Success, Versioned};
use shared::store::{CommitFailure, StoreError, TenantStore, UnitOfWork, WriteError};
use std::collections::BTreeSet;
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    New,
    Id(UserId),
    /// The user with this e-mail address, folded, or a new one.
    Email(String),
}

pub(crate) enum Action {
    Write(Box<UserWrite>),
    Delete,
    /// No effect: the request has these errors.
    Refuse(Vec<FieldError>),
}

impl Action {
    pub(crate) fn set(change: impl Into<UserChange>, unchanged: ReadOnlyFields, errors: Vec<FieldError>) -> Self {
        Self::Write(Box::new(UserWrite { change: change.into(), unchanged, errors }))
    }
}

pub(crate) struct UserWrite {
    pub(crate) change: UserChange,
    pub(crate) unchanged: ReadOnlyFields,
    pub(crate) errors: Vec<FieldError>,
}

/// A user after an operation.
pub(crate) struct UserOutcome {
    pub(crate) user: Stored<User>,
    pub(crate) result: RowResult,
    pub(crate) is_deleted: bool,
    /// Of an update, in a dry run.
    pub(crate) changes: Option<RowChanges>,
}

pub(crate) struct UserOperation {
    pub(crate) users: Arc<UsersInBulk>,
    /// The caller's role: no higher one can be given.
    pub(crate) role: Role,
    pub(crate) target: Target,
    pub(crate) action: Action,
    pub(crate) if_match: Option<ExpectedVersions>,
    /// For the response that is sent and stored.
    pub(crate) respond: fn(&UserOutcome) -> Result<StoredResponse, StoreError>,
    /// Names the place of an error in the request.
    pub(crate) locate: fn(FieldError) -> FieldError,
    /// Names the place of a missing user in the request.
    pub(crate) missing: fn(ApiError) -> ApiError,
    /// For a creation.
    pub(crate) new_id: UserId,
}

impl UserOperation {
    /// Responds as a single request, with errors located in a JSON body.
    pub(crate) fn new(caller: &Caller, users: &Arc<UsersInBulk>, new_id: UserId, target: Target, action: Action) -> Self {
        let users = Arc::clone(users);
        let (locate, missing): (fn(FieldError) -> FieldError, _) = (|error| error, |error| error);
        Self { users, role: caller.role, target, action, if_match: None, respond, locate, missing, new_id }
    }

    /// The only operation of a request.
    pub(crate) fn alone(caller: &Caller, id: UserId, target: Target, action: Action) -> Self {
        Self::new(caller, &Arc::default(), id, target, action)
    }

    /// Reads the operations' users, and the owners of their e-mail addresses.
    async fn load(reads: &TenantStore, operations: &[&Self]) -> Result<(), ApiError> {
        let Some(first) = operations.first() else { return Ok(()) };
        let id = |operation: &&Self| if let Target::Id(id) = operation.target { Some(id) } else { None };
        let ids: BTreeSet<UserId> = operations.iter().filter_map(id).collect();
        let emails = operations.iter().filter_map(|operation| operation.email()).collect();
        Ok(first.users.load(reads, ids, &emails).await?)
    }

    /// The address that the operation sets or names, folded.
    pub(crate) fn email(&self) -> Option<String> {
        match (&self.target, &self.action) {
            (Target::Email(email), _) => Some(email.clone()),
            (_, Action::Write(write)) => write.change.email.as_ref().map(|email| email.folded()),
            _ => None,
        }
    }

    /// `None` if the operation creates one.
    fn found(&self) -> Result<Option<Stored<User>>, ApiError> {
        match &self.target {
            Target::New => Ok(None),
            Target::Id(id) => self.users.user(*id).map(Some).map_err(self.missing),
            Target::Email(email) => self.users.owner(email).map(|id| self.users.user(id)).transpose(),
        }
    }

    fn invalid(&self, errors: Vec<FieldError>) -> ApiError {
        ApiError::Invalid(errors.into_iter().map(self.locate).collect())
    }

    fn check_email(&self, user: &User) -> Result<(), ApiError> {
        match self.users.owner(&user.email.folded()).filter(|owner| *owner != user.id()) {
            Some(owner) => Err(WriteError::Duplicate("email", Some((Kind::User, owner.uuid()))).into()),
            None => Ok(()),
        }
    }

    fn new_user(&self, write: &UserWrite) -> Result<User, ApiError> {
        let mut errors = write.errors.clone();
        write.unchanged.refuse_in_creation(&mut errors);
        let has_error = |field: &str| write.errors.iter().any(|error| error.is_about(field));
        let UserChange { email, display_name, role, is_active } = write.change.clone();
        let missing = [("email", email.is_none()), ("display_name", display_name.is_none())];
        let missing = missing.into_iter().filter(|(field, is_missing)| *is_missing && !has_error(field));
        errors.extend(missing.map(|(field, _)| FieldError::field(field, "is required")));
        errors.extend(email.as_ref().and_then(reserved));
        match (email, display_name) {
            (Some(email), Some(display_name)) if errors.is_empty() => Ok(User {
                id: self.new_id,
                email,
                display_name,
                role: role.unwrap_or(Role::Viewer),
                is_active: is_active.unwrap_or(true),
                erased_at: None,
            }),
            _ => Err(self.invalid(errors)),
        }
    }
}

fn reserved(email: &Email) -> Option<FieldError> {
    email.check_free().err().map(|error| FieldError::field("email", error.to_string()))
}

fn erased() -> ApiError {
    let detail = "The user was erased, so nothing of it can be changed.";
    ApiError::conflict(ConflictCode::Conflict, detail, json!({"erased": true}))
}

/// The same response as that of a single request.
fn respond(changed: &UserOutcome) -> Result<StoredResponse, StoreError> {
    let user = changed.user.clone();
    match changed.result {
        _ if changed.is_deleted => Data { data: UserView::from(user) }.to_stored(Vec::new()),
        RowResult::Created => Created::<UserView>::of("users", user).to_stored(Vec::new()),
        _ => Versioned::<UserView>::from(user).to_stored(Vec::new()),
    }
}

impl Command for UserOperation {
    type Inputs = Option<Stored<User>>;
    type Outcome = UserOutcome;

    async fn read(&self, reads: &TenantStore) -> Result<Self::Inputs, ApiError> {
        Self::load(reads, &[self]).await?;
        self.found()
    }

    fn decide(
        &self,
        principal: &Principal,
        unit: &mut UnitOfWork<'_>,
        found: &Self::Inputs,
    ) -> Result<UserOutcome, CommitFailure<ApiError>> {
        let Some(old) = found else {
            let Action::Write(write) = &self.action else { return Err(ApiError::NotFound.into()) };
            let user = self.new_user(write)?;
            self.role.check_grant(None, user.role).map_err(ApiError::from)?;
            self.check_email(&user)?;
            return Ok(UserOutcome { user: unit.create(user)?, result: RowResult::Created, is_deleted: false, changes: None });
        };
        if self.if_match.as_ref().is_some_and(|expected| !expected.contains(old.version)) {
            return Err(ApiError::PreconditionFailed.into());
        }
        let Action::Write(write) = &self.action else {
            unit.delete(old)?;
            return Ok(UserOutcome { user: old.clone(), result: RowResult::Updated, is_deleted: true, changes: None });
        };
        let mut errors = write.errors.clone();
        errors.extend(write.unchanged.errors(&UserView::from(old.clone()))?);
        if !errors.is_empty() {
            return Err(self.invalid(errors).into());
        }
        let next = old.value.changed(&write.change);
        if let Some(error) = Some(&next.email).filter(|email| **email != old.value.email).and_then(reserved) {
            return Err(self.invalid(vec![error]).into());
        }
        if next != old.value && old.value.erased_at.is_some() {
            return Err(erased().into());
        }
        // A user who becomes active again gets the role again.
        let present = (old.value.is_active || !next.is_active).then_some(old.value.role);
        self.role.check_grant(present, next.role).map_err(ApiError::from)?;
        self.check_email(&next)?;
        let user = unit.update(old, next)?;
        let result = if user.version == old.version { RowResult::Unchanged } else { RowResult::Updated };
        let changes = principal.store.is_dry_run().then(|| RowChanges::of(old.changes_to(&user.value)));
        Ok(UserOutcome { user, result, is_deleted: false, changes })
    }

    fn stored_response(&self, changed: &UserOutcome) -> Result<StoredResponse, StoreError> {
        (self.respond)(changed)
    }

    fn classify_failure(&self, error: WriteError, _: &UserOutcome) -> CommitFailure<ApiError> {
        match (&error, &self.target) {
            // Another request was faster: the next attempt finds the user who has the address.
            (WriteError::Duplicate(..), Target::Email(_)) => CommitFailure::Outdated(error),
            _ => error.into(),
        }
    }
}

impl Operation for UserOperation {
    async fn prepare(principal: &Principal, operations: &[&Self]) -> Result<(), ApiError> {
        Self::load(&principal.store, operations).await
    }

    fn unique_values(&self) -> Vec<(&'static str, String)> {
        self.email().into_iter().map(|email| ("email", email)).collect()
    }

    fn subjects(&self) -> Vec<String> {
        let user = self.found().ok().flatten();
        let present = user.as_ref().map(|user| user.value.email.folded());
        let emails = [present, self.email()].into_iter().flatten().map(|email| format!("email {email}"));
        emails.chain(user.map(|user| format!("user {}", user.value.id))).collect()
    }

    async fn inputs(&self, _: &Principal, _: bool) -> Result<Self::Inputs, ApiError> {
        match &self.action {
            Action::Refuse(errors) => Err(ApiError::Invalid(errors.clone())),
            _ => self.found(),
        }
    }

    fn note(&self, changed: &UserOutcome) {
        match changed.is_deleted {
            true => self.users.remove(changed.user.value.id),
            false => self.users.put(&changed.user),
        }
    }
}
