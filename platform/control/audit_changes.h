// What a change changed, field by field, as the audit log tells it. Never a variable's value: those
// may be secret.
//
// Pure.
#pragma once

#include <vector>

#include "access/audit.h"
#include "job/job.h"
#include "job/project.h"

namespace muster::control {

/// The fields that differ; nullptr: it was not there before, or is not afterwards.
std::vector<access::FieldChange> changes_of(const job::Project* before, const job::Project* after);
std::vector<access::FieldChange> changes_of(const job::Job* before, const job::Job* after);

}  // namespace muster::control
