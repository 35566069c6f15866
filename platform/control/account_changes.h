// What a change of a user or a token changed, field by field, as the audit log tells it. Never a
// hash.
//
// Pure.
#pragma once

#include <vector>

#include "access/audit.h"
#include "access/identity.h"

namespace muster::control {

/// The fields that differ; nullptr: it was not there before, or is not afterwards.
std::vector<access::FieldChange> changes_of(const access::User* before, const access::User* after);
std::vector<access::FieldChange> changes_of(const access::Token* before,
                                            const access::Token* after);

}  // namespace muster::control
