#include "api/label_wire.h"

#include "api/fields.h"
#include "base/utf8.h"
#include "job/validate.h"
#include "record/field.h"

namespace muster::api {

namespace {

struct LabelsDocument {
  LabelChanges labels;
};

}  // namespace

const record::Table& label_changes_table() {
  static const record::Table table = record::table<LabelsDocument>(
      "LabelChanges",
      {record::field<&LabelsDocument::labels>(
          "labels", {.help = "Each label gets its value, or is removed where the value is null.",
                     .need = Need::kRequired,
                     .schema = R"({"additionalProperties": {"type": ["string", "null"],
                                                            "maxLength": 256},
                                   "propertyNames": {"minLength": 1, "maxLength": 128}})"})},
      "A label that is not named stays as it is.");
  return table;
}

std::string label_changes_to_json(const LabelChanges& changes) {
  const LabelsDocument document{changes};
  std::string text;
  JsonWriter json(text);
  label_changes_table().write(json, &document, record::Form::kWire);
  return text;
}

base::Result<LabelChanges> label_changes_from_json(std::string_view text) {
  LabelsDocument document;
  MUSTER_CHECK(read_document(text, "change of labels", [&](Fields& fields) {
    fields.record(label_changes_table(), &document);
    for (const auto& [name, value] : document.labels) {
      const std::string field = "labels." + base::shortened(name);
      if (!job::is_label_name(name)) {
        fields.fault(field, "is not a label name: use 1 to 128 bytes of text without '='");
      }
      if (value && !job::is_label_value(*value)) {
        fields.fault(field, "is not text of at most 256 bytes without control characters");
      }
    }
  }));
  return document.labels;
}

}  // namespace muster::api
