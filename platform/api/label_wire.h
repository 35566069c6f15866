// A change of a job's labels, as it goes over the wire: {"labels": {"a": "b", "c": null}} sets the
// label a and takes c away. A tag is a label whose value is empty.
//
// Pure; as api/wire.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "record/table.h"

namespace muster::api {

/// Nothing: the label is taken away.
using LabelChanges = std::map<std::string, std::optional<std::string>>;

/// Of the document that holds them.
const record::Table& label_changes_table();

std::string label_changes_to_json(const LabelChanges& changes);
/// kInvalid also for what no label can be called or hold.
base::Result<LabelChanges> label_changes_from_json(std::string_view text);

}  // namespace muster::api
