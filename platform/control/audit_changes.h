// What a change changed, field by field, as the audit log tells it. Never a variable's value: those
// may be secret.
//
// Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "access/audit.h"
#include "access/token.h"
#include "access/user.h"
#include "job/job.h"
#include "job/project.h"

namespace muster::control {

/// The fields that differ; nullptr: it was not there before, or is not afterwards.
std::vector<access::FieldChange> changes_of(const job::Project* before, const job::Project* after);
std::vector<access::FieldChange> changes_of(const job::Job* before, const job::Job* after);

// What a change of a user or a token changed, field by field, as the audit log tells it. Never a
// hash.
//
// Pure.

/// The fields that differ; nullptr: it was not there before, or is not afterwards.
std::vector<access::FieldChange> changes_of(const access::User* before, const access::User* after);
std::vector<access::FieldChange> changes_of(const access::Token* before,
                                            const access::Token* after);

// What differs between two states of a thing, field by field, as the audit log tells it.
//
// Pure.

/// A thing's fields, each as a sentence would say it.
using FieldTexts = std::map<std::string, std::string>;

/// The fields that differ, by name; one that is not there is as an empty one.
std::vector<access::FieldChange> differences(const FieldTexts& before, const FieldTexts& after);

/// The same of two things that have fields_of(); nullptr: it has none.
template <class Thing, class FieldsOf>
std::vector<access::FieldChange> differences(const Thing* before, const Thing* after,
                                             FieldsOf fields_of) {
  return differences(before == nullptr ? FieldTexts() : fields_of(*before),
                     after == nullptr ? FieldTexts() : fields_of(*after));
}

}  // namespace muster::control
