// Users, tokens, secrets and audit records as the documents (CBOR) that the store keeps.
//
// Pure. Their own format, apart from the API's. A field that is not there, because an earlier
// Muster wrote it, has its default.
#pragma once

#include <string>
#include <string_view>

#include "access/audit.h"
#include "access/secret_box.h"
#include "access/token.h"
#include "access/user.h"
#include "base/result.h"

namespace muster::store {

std::string to_user_document(const access::User& user);
base::Result<access::User> from_user_document(std::string_view document);

std::string to_token_document(const access::Token& token);
base::Result<access::Token> from_token_document(std::string_view document);

std::string to_secret_document(const access::Secret& secret);
base::Result<access::Secret> from_secret_document(std::string_view document);

/// Without its number, which is the row's.
std::string to_audit_document(const access::AuditRecord& record);
base::Result<access::AuditRecord> from_audit_document(std::string_view document);

}  // namespace muster::store
