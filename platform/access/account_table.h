// The fields of users, tokens, secrets and the audit log, one row each (record/table.h).
#pragma once

#include "access/audit.h"
#include "access/identity.h"
#include "access/secret_box.h"
#include "record/table.h"
#include "record/words.h"

namespace muster::access {

const record::Table& table_of(const User*);
/// The fields of a request to create a User.
const record::Table& user_request_table();
const record::Table& table_of(const Token*);
const record::Table& table_of(const Secret*);
const record::Table& table_of(const AuditRecord*);
const record::Table& table_of(const FieldChange*);

record::Words<Role> words_of(const Role*);
record::Words<TokenKind> words_of(const TokenKind*);

}  // namespace muster::access
