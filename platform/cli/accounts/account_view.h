// Users, tokens, secrets, contexts and the audit log as people read them.
//
// Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "access/audit.h"
#include "access/identity.h"
#include "access/secret_box.h"
#include "api/account_wire.h"
#include "base/clock.h"
#include "cli/connection/contexts.h"

namespace muster::cli::accounts {

/// 2026-01-31T12:34:56Z, or "never".
std::string until(const std::optional<base::Time>& time);

/// NAME SERVER USER UNTIL; the one in use is marked with a star.
std::string context_table(const Contexts& contexts, base::Time now);
/// {"in_use", "contexts": [...]}: without the tokens.
std::string context_list_json(const Contexts& contexts);

std::string whoami_page(const api::WhoAmI& who, const Context& context);

std::string user_table(const std::vector<access::User>& users);
std::string user_page(const access::User& user);
/// What the admin has to pass on, and how it is used. `server`: its address, or empty.
std::string invitation_text(const api::NewToken& invitation, const std::string& server);

std::string member_table(const std::map<std::string, access::Role>& members);
std::string token_table(const std::vector<access::Token>& tokens, base::Time now);
std::string secret_table(const std::vector<access::Secret>& secrets);
std::string audit_table(const std::vector<access::AuditRecord>& records);

}  // namespace muster::cli::accounts
