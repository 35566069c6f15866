#include "api/label_wire.h"

#include "api/fields.h"
#include "base/utf8.h"
#include "job/validate.h"

namespace muster::api {

std::string label_changes_to_json(const LabelChanges& changes) {
  std::string text;
  JsonWriter json(text);
  json.open('{').key("labels").open('{');
  for (const auto& [name, value] : changes) {
    json.key(name);
    if (value) {
      json.text(*value);
    } else {
      json.null();
    }
  }
  json.close('}').close('}');
  return text;
}

base::Result<LabelChanges> label_changes_from_json(std::string_view text) {
  LabelChanges changes;
  MUSTER_CHECK(read_document(text, "change of labels", [&](Fields& fields) {
    fields.read("labels", changes, Need::kRequired);
    for (const auto& [name, value] : changes) {
      const std::string field = "labels." + base::shortened(name);
      if (!job::is_label_name(name)) {
        fields.fault(field, "is no name of a label: use 1 to 128 bytes of text without '='");
      }
      if (value && !job::is_label_value(*value)) {
        fields.fault(field, "is not text of at most 256 bytes without control characters");
      }
    }
  }));
  return changes;
}

}  // namespace muster::api
