// What the values of one C++ type look like in documents: how they are written, read and described.
//
// A Type works on untyped pointers to values of its own type; record/field.h is the one place that
// makes them, and it chooses the Type by the member's. Immutable; thread-safe.
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
  /// Leaves `value` as it is where the input is at fault.
  virtual void read(const Input& input, void* value) const = 0;
  virtual bool is_same(const void* a, const void* b) const = 0;
  /// Of the wire form. `notes` are of the row whose values these are.
  virtual Schema schema(const Notes& notes, Schemas& schemas) const = 0;

  /// What the wire form adds to a field's name: "_ms", "_bytes".
  virtual std::string_view unit() const { return ""; }
  /// An empty optional is never written.
  virtual bool is_absent(const void*) const { return false; }
  /// Of a document within a document.
  virtual const Table* table() const { return nullptr; }
  /// Of a list: what its elements are.
  virtual const Type* element() const { return nullptr; }
  /// Of an enumeration.
  virtual std::vector<std::string> words() const { return {}; }
  virtual bool is_flag() const { return false; }
  virtual bool is_texts() const { return false; }
  virtual bool is_pairs() const { return false; }
  /// Of pairs: sets one of them.
  virtual void set_pair(const std::string& /*key*/, const Input&, void* /*value*/) const {}
};

/// What a number or a text stands for, where its C++ type does not say it.
enum class As {
  kPlain,
  kMilli,     ///< thousandths, told as decimals: 500 is 0.5
  kCpus,      ///< the same; people also write "500m"
  kShare,     ///< the same, more than 0 and less than 1
  kBytes,     ///< people write "2Gi"
  kText,      ///< bytes that may be no UTF-8: a path, a word of argv
  kSentence,  ///< words for people, which may quote such bytes
  kProse,     ///< the same, but such bytes are replaced
};

std::shared_ptr<const Type> text_type(As as = As::kPlain);
std::shared_ptr<const Type> flag_type();
std::shared_ptr<const Type> int_type(As as);
std::shared_ptr<const Type> int64_type(As as);
std::shared_ptr<const Type> count_type();  ///< of uint64_t
std::shared_ptr<const Type> real_type();
std::shared_ptr<const Type> time_type();
std::shared_ptr<const Type> duration_type();  ///< of milliseconds
std::shared_ptr<const Type> seconds_type();
std::shared_ptr<const Type> texts_type(As as = As::kPlain);
std::shared_ptr<const Type> ints_type();
std::shared_ptr<const Type> pairs_type();

}  // namespace muster::record
