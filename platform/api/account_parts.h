// Roles and tokens, of which several documents about accounts are made.
//
// Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "access/role.h"
#include "api/account_wire.h"
#include "api/fields.h"

namespace muster::api {

void read_role(Fields& fields, std::string_view name, access::Role& into,
               Need need = Need::kOptional);

/// {"team-a": "member"}
void write_roles(JsonWriter& json, std::string_view name,
                 const std::map<std::string, access::Role>& roles);
void read_roles(Fields& fields, std::string_view name, std::map<std::string, access::Role>& into);

void write_new_token(JsonWriter& json, const NewToken& token);
void read_new_token(Fields& fields, NewToken& token);

}  // namespace muster::api
