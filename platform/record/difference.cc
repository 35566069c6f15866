#include "record/difference.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "record/type.h"

namespace muster::record {

namespace {

std::optional<std::string> text_of(const std::optional<Json>& value) {
  return value ? std::optional(base::json_text(*value)) : std::nullopt;
}

/// The value of a field that a document leaves out.
std::optional<Json> default_of(const Table& table, const Row& row) {
  const void* const value = row.member_of(table.defaults());
  if (row.type->is_absent(value)) return std::nullopt;
  std::string text;
  JsonWriter json(text);
  row.type->write(json, value, Form::kHuman);
  return base::parse_json(text);
}

std::optional<Json> member_of(const std::optional<Json>& object, const std::string& key) {
  if (!object || !object->contains(key)) return std::nullopt;
  return (*object)[key];
}

bool is_object_or_missing(const std::optional<Json>& value) {
  return !value || value->is_object();
}

bool is_list_of_objects(const std::optional<Json>& value) {
  return !value ||
         (value->is_array() && std::all_of(value->begin(), value->end(), [](const Json& element) {
            return element.is_object();
          }));
}

class Comparison {
 public:
  /// `table`: of the values, if they are documents.
  void compare(const std::string& path, const Table* table, const Table* of_elements,
               const std::optional<Json>& left, const std::optional<Json>& right) {
    if (left == right) return;
    const bool is_object = is_object_or_missing(left) && is_object_or_missing(right);
    if (is_object) return compare_objects(path, table, left, right);
    const bool is_list = is_list_of_objects(left) && is_list_of_objects(right);
    if (is_list) return compare_lists(path, of_elements, left, right);
    found_.push_back({.path = path, .left = text_of(left), .right = text_of(right)});
  }

  std::vector<Difference> found() && { return std::move(found_); }

 private:
  void compare_objects(const std::string& path, const Table* table, const std::optional<Json>& left,
                       const std::optional<Json>& right) {
    const std::string prefix = path.empty() ? "" : path + ".";
    if (table == nullptr) {
      Json keys = left.value_or(Json::object());
      keys.update(right.value_or(Json::object()));
      for (const auto& [key, unused] : keys.items()) {
        compare(prefix + key, nullptr, nullptr, member_of(left, key), member_of(right, key));
      }
      return;
    }
    for (const Row& row : table->rows()) {
      if (!row.is_in(Form::kHuman)) continue;
      auto of_left = member_of(left, row.name);
      auto of_right = member_of(right, row.name);
      if (!of_left && !of_right) continue;
      if (!of_left) of_left = default_of(*table, row);
      if (!of_right) of_right = default_of(*table, row);
      const Type* const element = row.type->element();
      compare(prefix + row.name, row.type->table(), element == nullptr ? nullptr : element->table(),
              of_left, of_right);
    }
  }

  void compare_lists(const std::string& path, const Table* table, const std::optional<Json>& left,
                     const std::optional<Json>& right) {
    const size_t count = std::max(left ? left->size() : 0, right ? right->size() : 0);
    const auto element = [](const std::optional<Json>& list, size_t i) -> std::optional<Json> {
      if (!list || i >= list->size()) return std::nullopt;
      return (*list)[i];
    };
    for (size_t i = 0; i < count; ++i) {
      const std::string place = path + "[" + std::to_string(i) + "]";
      const auto of_left = element(left, i);
      const auto of_right = element(right, i);
      if (of_left && of_right) {
        compare(place, table, nullptr, of_left, of_right);
      } else {
        found_.push_back({.path = place, .left = text_of(of_left), .right = text_of(of_right)});
      }
    }
  }

  std::vector<Difference> found_;
};

Json document_of(const Table& table, const void* record) {
  std::string text;
  JsonWriter json(text);
  table.write(json, record, Form::kHuman);
  return base::parse_json(text);
}

}  // namespace

std::vector<Difference> differences(const Table& table, const void* left, const void* right) {
  Comparison comparison;
  comparison.compare("", &table, nullptr, document_of(table, left), document_of(table, right));
  return std::move(comparison).found();
}

}  // namespace muster::record
