// What differs between two states of a thing, field by field, as the audit log tells it.
//
// Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "access/audit.h"

namespace muster::control {

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
