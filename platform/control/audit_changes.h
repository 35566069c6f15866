// The changed fields of a change, as the audit log records them. Values of variables, which may be
// secret, and their hashes are never recorded.
//
// Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "access/audit.h"
#include "access/identity.h"
#include "base/clock.h"
#include "job/job.h"
#include "job/project.h"

namespace muster::control {

/// The actor of what the server does by itself. No user has such a name.
inline constexpr const char* kServer = "(server)";

/// The fields that differ; nullptr: the object did not exist before, or does not exist afterwards.
std::vector<access::FieldChange> changes_of(const job::Project* before, const job::Project* after);
std::vector<access::FieldChange> changes_of(const job::Job* before, const job::Job* after);
std::vector<access::FieldChange> changes_of(const access::User* before, const access::User* after);
std::vector<access::FieldChange> changes_of(const access::Token* before,
                                            const access::Token* after);

/// The record of an action; empty if `by` names no user, or nothing has changed.
std::vector<access::AuditRecord> audit_records(base::Time time, const access::Actor& by,
                                               std::string action, std::string target,
                                               std::string project,
                                               std::vector<access::FieldChange> changes);
/// The same for a job.
std::vector<access::AuditRecord> audit_records(base::Time time, const access::Actor& by,
                                               std::string action, const job::Job* before,
                                               const job::Job* after);

/// The fields of an object, each as text.
using FieldTexts = std::map<std::string, std::string>;
/// The fields that differ, by name; a missing field is an empty one.
std::vector<access::FieldChange> differences(const FieldTexts& before, const FieldTexts& after);
/// The same of two objects that fields_of() applies to; nullptr: an object without fields.
template <class Thing, class FieldsOf>
std::vector<access::FieldChange> differences(const Thing* before, const Thing* after,
                                             FieldsOf fields_of) {
  return differences(before == nullptr ? FieldTexts() : fields_of(*before),
                     after == nullptr ? FieldTexts() : fields_of(*after));
}

}  // namespace muster::control
