#include "dialects/kubernetes/node.h"

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "record/input.h"

namespace muster::dialects::kubernetes {

using config::YamlEntry;
using config::YamlValue;

namespace {

constexpr std::string_view kMergeKey = "<<";

const char* noun_of(YamlValue::Type type) {
  switch (type) {
    case YamlValue::Type::kNull:
      return "nothing";
    case YamlValue::Type::kScalar:
      return "a single value";
    case YamlValue::Type::kList:
      return "a list";
    case YamlValue::Type::kMap:
      return "a map";
  }
  return "";
}

std::string expected(const char* what, const YamlValue& value) {
  return std::string("must be ") + what + ", not " + noun_of(value.type);
}

}  // namespace

bool Node::is_default() const {
  switch (value_->type) {
    case YamlValue::Type::kNull:
      return true;
    case YamlValue::Type::kScalar:
      return value_->scalar.empty() || value_->scalar == "false" || value_->scalar == "0";
    case YamlValue::Type::kList:
      return value_->list.empty();
    case YamlValue::Type::kMap:
      return value_->map.empty();
  }
  return false;
}

std::optional<std::string> Node::text() const {
  if (value_->type == YamlValue::Type::kScalar) return value_->scalar;
  fault(expected("text", *value_));
  return std::nullopt;
}

std::optional<std::string> Node::word(const std::vector<std::string>& words) const {
  auto written = text();
  if (!written) return std::nullopt;
  if (std::find(words.begin(), words.end(), *written) != words.end()) return written;
  fault(record::not_a_choice(*written, words));
  return std::nullopt;
}

std::optional<bool> Node::flag() const {
  if (value_->type == YamlValue::Type::kScalar) {
    if (value_->scalar == "true") return true;
    if (value_->scalar == "false") return false;
  }
  fault("must be true or false");
  return std::nullopt;
}

std::optional<int64_t> Node::integer(int64_t low, int64_t high) const {
  const auto number = value_->type == YamlValue::Type::kScalar
                          ? base::number_of<int64_t>(value_->scalar)
                          : std::nullopt;
  if (number && *number >= low && *number <= high) return number;
  fault("must be a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  return std::nullopt;
}

std::vector<Node> Node::elements() const {
  std::vector<Node> elements;
  if (value_->type != YamlValue::Type::kList) {
    fault(expected("a list", *value_));
    return elements;
  }
  for (size_t i = 0; i < value_->list.size(); ++i) {
    elements.emplace_back(value_->list[i], place_.path + "[" + std::to_string(i) + "]", *findings_);
  }
  return elements;
}

std::vector<std::string> Node::texts() const {
  std::vector<std::string> texts;
  for (const Node& element : elements()) {
    if (auto one = element.text()) texts.push_back(*std::move(one));
  }
  return texts;
}

std::vector<std::pair<std::string, std::string>> Node::pairs() const {
  std::vector<std::pair<std::string, std::string>> pairs;
  Map map(*this);
  for (const std::string& key : map.keys()) {
    if (auto value = map.text(key)) pairs.emplace_back(key, *std::move(value));
  }
  return pairs;
}

Map::Map(const Node& node) : node_(node) {
  if (node.value().type != YamlValue::Type::kMap) {
    node.fault(expected("a map", node.value()));
    return;
  }
  for (const YamlEntry& entry : node.value().map) {
    if (entry.key == kMergeKey) continue;
    if (entries_.emplace(entry.key, &entry).second) {
      order_.push_back(entry.key);
      continue;
    }
    Node(entry.value, Place{node.place().path + "." + entry.key, entry.line}, node.findings())
        .fault("is given twice");
  }
  for (const YamlEntry& entry : node.value().map) {
    if (entry.key == kMergeKey) add_merged(entry.value);
  }
}

void Map::add_merged(const YamlValue& value) {
  for (const YamlValue& element : value.list) add_merged(element);
  for (const YamlEntry& entry : value.map) {
    if (entry.key == kMergeKey) {
      add_merged(entry.value);
    } else if (entries_.emplace(entry.key, &entry).second) {
      order_.push_back(entry.key);
    }
  }
}

std::optional<Node> Map::take(const std::string& key) {
  known_.insert(key);
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second->value.type == YamlValue::Type::kNull) {
    return std::nullopt;
  }
  const std::string& path = node_.place().path;
  return Node(found->second->value,
              Place{path.empty() ? key : path + "." + key, found->second->line}, node_.findings());
}

std::optional<Node> Map::require(const std::string& key) {
  auto found = take(key);
  if (!found && node_.value().type == YamlValue::Type::kMap) {
    const std::string& path = node_.place().path;
    node_.findings().faults.push_back({.field = path.empty() ? key : path + "." + key,
                                       .what = "is missing",
                                       .line = node_.place().line});
  }
  return found;
}

void Map::skip(std::initializer_list<const char*> keys) {
  for (const char* key : keys) known_.insert(key);
}

void Map::refuse(const char* key, const std::string& why) {
  const auto found = take(key);
  if (found && !found->is_default()) found->fault("is not supported" + why);
}

void Map::warn(const char* key, const std::string& what) {
  const auto found = take(key);
  if (found && !found->is_default()) found->warning(what);
}

std::optional<std::string> Map::text(const std::string& key) {
  const auto found = take(key);
  return found ? found->text() : std::nullopt;
}

std::optional<bool> Map::flag(const std::string& key) {
  const auto found = take(key);
  return found ? found->flag() : std::nullopt;
}

std::optional<int64_t> Map::integer(const std::string& key, int64_t low, int64_t high) {
  const auto found = take(key);
  return found ? found->integer(low, high) : std::nullopt;
}

void Map::end() {
  const std::vector<std::string> candidates(known_.begin(), known_.end());
  for (const std::string& key : keys()) {
    if (known_.contains(key) || node_.findings().faults.size() >= kMostFindings) continue;
    const auto unknown = take(key);  // null values are harmless
    if (unknown) unknown->fault("is an unknown key" + record::did_you_mean(key, candidates));
  }
}

}  // namespace muster::dialects::kubernetes
