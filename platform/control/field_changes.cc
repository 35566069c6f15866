#include "control/field_changes.h"

#include <utility>

namespace muster::control {

using access::FieldChange;

std::vector<FieldChange> differences(const FieldTexts& before, const FieldTexts& after) {
  std::map<std::string, FieldChange> changes;
  for (const auto& [field, text] : before) changes[field].before = text;
  for (const auto& [field, text] : after) changes[field].after = text;
  std::vector<FieldChange> differing;
  for (auto& [field, change] : changes) {
    if (change.before == change.after) continue;
    change.field = field;
    differing.push_back(std::move(change));
  }
  return differing;
}

}  // namespace muster::control
