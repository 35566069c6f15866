// How the values of one C++ type are written to documents, read from them and described in schemas.
//
// A Type works on untyped pointers to values of its C++ type. record/field.h creates Types from the
// types of members. Immutable; thread-safe.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "record/table.h"

namespace muster::record {

/// The OpenAPI document keeps its keys in the order in which they were written.
using Schema = nlohmann::ordered_json;

/// Collects the schemas that others refer to by name.
class Schemas;

class Type {
 public:
  Type() = default;
  virtual ~Type() = default;
  Type(const Type&) = delete;
  Type& operator=(const Type&) = delete;

  virtual void write(JsonWriter& json, const void* value, Form form) const = 0;
  /// Notes a fault and leaves `value` unchanged if the input is not of this type.
  virtual void read(const Input& input, void* value) const = 0;
  virtual bool is_same(const void* a, const void* b) const = 0;
  /// The schema of the wire form. `notes`: those of the row.
  virtual Schema schema(const Notes& notes, Schemas& schemas) const = 0;

  /// The suffix of a field's name in the wire form: "_ms", "_bytes".
  virtual std::string_view unit() const { return ""; }
  /// An empty optional is never written.
  virtual bool is_absent(const void*) const { return false; }
  /// Of a document within a document.
  virtual const Table* table() const { return nullptr; }
  /// Of a map of names to documents.
  virtual const Table* table_of_values() const { return nullptr; }
  /// Of a list: the type of its elements.
  virtual const Type* element() const { return nullptr; }
  /// Of an enumeration.
  virtual std::vector<std::string> words() const { return {}; }
  virtual bool is_flag() const { return false; }
  virtual bool is_texts() const { return false; }
  virtual bool is_pairs() const { return false; }
  /// Of pairs: sets one of them.
  virtual void set_pair(const std::string& /*key*/, const Input&, void* /*value*/) const {}
};

/// The meaning of a number or a text, if its C++ type does not show it.
enum class As {
  kPlain,
  kMilli,     ///< thousandths, written as decimals: 500 is 0.5
  kCpus,      ///< the same; people also write "500m"
  kShare,     ///< the same, more than 0 and less than 1
  kBytes,     ///< people write "2Gi"
  kText,      ///< bytes that may not be UTF-8: a path, a word of argv
  kSentence,  ///< a sentence, which may quote such bytes
  kProse,     ///< a sentence in which such bytes are replaced
};

std::shared_ptr<const Type> text_type(As as = As::kPlain);
std::shared_ptr<const Type> flag_type();
std::shared_ptr<const Type> int_type(As as);
std::shared_ptr<const Type> int64_type(As as);
std::shared_ptr<const Type> count_type();  ///< for uint64_t
std::shared_ptr<const Type> real_type();
std::shared_ptr<const Type> time_type();
std::shared_ptr<const Type> duration_type();  ///< of milliseconds
std::shared_ptr<const Type> seconds_type();
std::shared_ptr<const Type> texts_type(As as = As::kPlain);
std::shared_ptr<const Type> ints_type();
std::shared_ptr<const Type> pairs_type();

// The schemas of the OpenAPI document, made from tables.
//
// Every table and every enumeration is a schema of its own, which others refer to by its name.

class Schemas {
 public:
  Schemas();
  ~Schemas();
  Schemas(const Schemas&) = delete;
  Schemas& operator=(const Schemas&) = delete;

  /// Adds the schema of `table` and all schemas that it refers to.
  void add(const Table& table);
  /// {"LIST": [...]}, of records of `table`; `help` describes their order.
  void add_list(const std::string& name, const char* list, const Table& table,
                const char* help = "");
  bool has(std::string_view name) const;
  void set(const std::string& name, Schema schema);
  /// By name, in the order in which they were added.
  const Schema& all() const { return *all_; }

 private:
  std::unique_ptr<Schema> all_;
};

}  // namespace muster::record
