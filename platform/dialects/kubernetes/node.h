// A value of a Kubernetes file while it is read: its content, its path in the document
// ("spec.template.spec.containers[0].image"), and where its faults and warnings go.
//
// A key is read (take), has no counterpart in Muster (refuse: a fault), is harmless but without effect
// (warn), or changes nothing (skip). Every other key of a map is unknown, which is a fault too: a
// misspelled key is never dropped silently.
//
// Pure. Not thread-safe. A Node refers to its document and to its Findings, which must outlive it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "config/yaml.h"

namespace muster::dialects::kubernetes {

/// The maximum number of faults, and of warnings, in one report.
inline constexpr size_t kMostFindings = 1000;

/// The faults of a file, and warnings about fields without effect.
struct Findings {
  std::vector<base::Fault> faults;
  std::vector<base::Fault> warnings;
};

/// A place in the file, for findings after it was read.
struct Place {
  std::string path;
  int line = 0;
};

class Map;

class Node {
 public:
  Node(const config::YamlValue& value, std::string path, Findings& findings)
      : value_(&value), place_{std::move(path), value.line}, findings_(&findings) {}
  Node(const config::YamlValue& value, Place place, Findings& findings)
      : value_(&value), place_(std::move(place)), findings_(&findings) {}

  const Place& place() const { return place_; }
  Findings& findings() const { return *findings_; }
  const config::YamlValue& value() const { return *value_; }

  void fault(std::string what) const { add(findings_->faults, std::move(what)); }
  void warning(std::string what) const { add(findings_->warnings, std::move(what)); }

  /// Whether the value means the same as its absence: null, false, 0, "", [] or {}.
  bool is_default() const;

  // Each of these returns nothing, and adds a fault, if the value is not of its type.

  /// A scalar as it is written.
  std::optional<std::string> text() const;
  /// One of `words`.
  std::optional<std::string> word(const std::vector<std::string>& words) const;
  std::optional<bool> flag() const;
  std::optional<int64_t> integer(int64_t low, int64_t high) const;
  /// The elements of a list, each with its path; empty if it is no list.
  std::vector<Node> elements() const;
  std::vector<std::string> texts() const;
  /// A map of names to scalars, in the order of the file.
  std::vector<std::pair<std::string, std::string>> pairs() const;

 private:
  void add(std::vector<base::Fault>& list, std::string what) const {
    if (list.size() >= kMostFindings) return;
    list.push_back({.field = place_.path, .what = std::move(what), .line = place_.line});
  }

  const config::YamlValue* value_;
  Place place_;
  Findings* findings_;
};

/// The keys of a map. A key whose value is null counts as absent.
class Map {
 public:
  /// A fault if `node` is no map, or has a key twice; then the first counts. The maps of the key "<<"
  /// (YAML's merge key) are added, as in kubectl.
  explicit Map(const Node& node);

  const Node& node() const { return node_; }
  /// The keys of the file, in its order.
  const std::vector<std::string>& keys() const { return order_; }

  std::optional<Node> take(const std::string& key);
  /// take(); a fault if the key is absent.
  std::optional<Node> require(const std::string& key);

  /// These keys change nothing.
  void skip(std::initializer_list<const char*> keys);
  /// A fault if the key is present and not default; `why` completes "is not supported".
  void refuse(const char* key, const std::string& why);
  /// A warning, likewise.
  void warn(const char* key, const std::string& what);

  // Shorter forms of take() with a conversion.
  std::optional<std::string> text(const std::string& key);
  std::optional<bool> flag(const std::string& key);
  std::optional<int64_t> integer(const std::string& key, int64_t low, int64_t high);

  /// Adds a fault for each key that no call above has read. Call last.
  void end();

 private:
  void add_merged(const config::YamlValue& value);

  Node node_;
  std::map<std::string, const config::YamlEntry*> entries_;
  std::vector<std::string> order_;
  std::set<std::string> known_;
};

/// The most seconds that a field of Kubernetes can hold.
inline constexpr int64_t kMostSeconds = 2'147'483'647;

}  // namespace muster::dialects::kubernetes
