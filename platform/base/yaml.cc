#include "base/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <optional>
#include <sstream>
#include <utility>

namespace muster::base {

namespace {

using base::Error;
using base::ErrorCode;
using base::Fault;

Error yaml_error_at(int line, std::string what) {
  return {.code = ErrorCode::kInvalid,
          .what = "the YAML cannot be read",
          .faults = {Fault{.field = "", .what = std::move(what), .line = line}}};
}

/// Copies yaml-cpp's graph into our tree. Aliases are edges of the graph, so a few lines can stand
/// for billions of values, or for an endless chain: the copy counts the values that it creates.
class Copier {
 public:
  YamlValue copy(const YAML::Node& node, int parent_line, int depth) {
    YamlValue value{.line = line_of(node, parent_line)};
    if (depth > kMaxYamlDepth || ++count_ > kMaxYamlValues) {
      overflow_line_ = overflow_line_.value_or(value.line);
      return value;
    }
    if (node.IsScalar()) {
      value.type = YamlValue::Type::kScalar;
      value.scalar = node.Scalar();
    } else if (node.IsSequence()) {
      value.type = YamlValue::Type::kList;
      for (const auto& item : node) {
        if (overflow_line_) break;
        value.list.push_back(copy(item, value.line, depth + 1));
      }
    } else if (node.IsMap()) {
      value.type = YamlValue::Type::kMap;
      for (const auto& [key, item] : pairs_of(node)) {
        if (overflow_line_) break;
        const int line = line_of(key, value.line);
        value.map.push_back(
            {key.IsScalar() ? key.Scalar() : "", line, copy(item, line, depth + 1)});
      }
    }
    return value;
  }

  std::optional<int> overflow_line() const { return overflow_line_; }

 private:
  static std::vector<std::pair<YAML::Node, YAML::Node>> pairs_of(const YAML::Node& map) {
    std::vector<std::pair<YAML::Node, YAML::Node>> pairs;
    for (const auto& entry : map) pairs.emplace_back(entry.first, entry.second);
    return pairs;
  }

  /// An empty value has no position of its own.
  static int line_of(const YAML::Node& node, int parent_line) {
    const int line = node.Mark().line;
    return line < 0 ? parent_line : line + 1;
  }

  int count_ = 0;
  std::optional<int> overflow_line_;
};

/// Receives the starts of a stream's documents, and ignores their content.
class DocumentStarts : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { line_ = mark.line + 1; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

  int line() const { return line_; }

 private:
  int line_ = 0;
};

/// The line where a second document begins. Not YAML::LoadAll: yaml-cpp 0.7 finds endless documents
/// in some invalid texts (",`" and a control character), and would collect them all.
std::optional<int> second_document(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStarts starts;
  if (!parser.HandleNextDocument(starts) || !parser.HandleNextDocument(starts)) return std::nullopt;
  return starts.line();
}

Result<YamlValue> parse_or_throw(const std::string& text) {
  if (const auto line = second_document(text)) {
    return yaml_error_at(*line, "a second document begins; use one file for each document");
  }
  const YAML::Node document = YAML::Load(text);
  if (!document.IsDefined() || document.IsNull()) return YamlValue{.line = 1};
  Copier copier;
  YamlValue value = copier.copy(document, 1, 0);
  if (const auto line = copier.overflow_line()) {
    return yaml_error_at(*line, "too much: more than " + std::to_string(kMaxYamlDepth) +
                                    " levels or " + std::to_string(kMaxYamlValues) + " values");
  }
  return value;
}

}  // namespace

Result<YamlValue> parse_yaml(std::string_view text) {
  if (text.size() > kMaxYamlBytes) {
    return yaml_error_at(0, "is larger than " + std::to_string(kMaxYamlBytes >> 20) + " MiB");
  }
  try {
    return parse_or_throw(std::string(text));
  } catch (const YAML::Exception& error) {
    return yaml_error_at(error.mark.line + 1, error.msg);
  }
}

}  // namespace muster::base
