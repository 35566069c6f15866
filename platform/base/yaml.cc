#include "base/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
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
  /// `first_line`: of the text within its file. `count`: the values that other documents of the same
  /// file have created.
  explicit Copier(int first_line = 1, int count = 0) : offset_(first_line - 1), count_(count) {}

  int count() const { return count_; }

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
  int line_of(const YAML::Node& node, int parent_line) const {
    const int line = node.Mark().line;
    return line < 0 ? parent_line : line + 1 + offset_;
  }

  int offset_;
  int count_;
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

/// `first_line`: of the text within its file. `count`: the values of the documents before it; increased
/// by those of this document.
Result<YamlValue> parse_or_throw(const std::string& text, int first_line, int& count) {
  if (const auto line = second_document(text)) {
    return yaml_error_at(*line + first_line - 1,
                         "a second document begins; use one file for each document");
  }
  const YAML::Node document = YAML::Load(text);
  if (!document.IsDefined() || document.IsNull()) return YamlValue{.line = first_line};
  Copier copier(first_line, count);
  YamlValue value = copier.copy(document, first_line, 0);
  count = copier.count();
  if (const auto line = copier.overflow_line()) {
    return yaml_error_at(*line, "too much: more than " + std::to_string(kMaxYamlDepth) +
                                    " levels or " + std::to_string(kMaxYamlValues) + " values");
  }
  return value;
}

/// yaml-cpp's message for a tab in the indentation is vague. `line`: from 0.
bool is_indented_with_tab(std::string_view text, int line) {
  for (; line > 0 && !text.empty(); --line) {
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  const size_t first = text.find_first_not_of(' ');
  return first != std::string_view::npos && text[first] == '\t';
}

Result<YamlValue> parse_part(std::string_view text, int first_line, int& count) {
  try {
    return parse_or_throw(std::string(text), first_line, count);
  } catch (const YAML::Exception& error) {
    if (is_indented_with_tab(text, error.mark.line)) {
      return yaml_error_at(error.mark.line + first_line,
                           "is indented with a tab; YAML allows only spaces there");
    }
    return yaml_error_at(error.mark.line + first_line, error.msg);
  }
}

std::optional<Error> yaml_size_error(std::string_view text) {
  if (text.size() <= kMaxYamlBytes) return std::nullopt;
  return yaml_error_at(0, "is larger than " + std::to_string(kMaxYamlBytes >> 20) + " MiB");
}

/// A line that begins with "---" or "..." and a blank ends a document, even within a block of text.
bool is_document_marker(std::string_view line, std::string_view marker) {
  if (!line.starts_with(marker)) return false;
  line.remove_prefix(marker.size());
  return line.empty() || line.front() == ' ' || line.front() == '\t' || line.front() == '\r';
}

struct YamlPart {
  std::string_view text;
  int first_line = 1;
};

/// The documents of a stream, each from its "---" on.
std::vector<YamlPart> yaml_parts_of(std::string_view text) {
  std::vector<YamlPart> parts;
  size_t begin = 0;
  int first_line = 1;
  int line = 1;
  bool has_content = false;  // "%YAML 1.2" and comments precede the "---" of the same document
  for (size_t at = 0; at < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view this_line = text.substr(at, end - at);
    if (is_document_marker(this_line, "---")) {
      if (has_content) {
        parts.push_back({.text = text.substr(begin, at - begin), .first_line = first_line});
        begin = at;
        first_line = line;
      }
      has_content = true;
    } else if (!this_line.empty() && this_line.front() != '#' && this_line.front() != '%') {
      has_content = true;
    }
    at = end + 1;
  }
  if (begin < text.size()) parts.push_back({.text = text.substr(begin), .first_line = first_line});
  return parts;
}

}  // namespace

Result<YamlValue> parse_yaml(std::string_view text) {
  if (auto error = yaml_size_error(text)) return *std::move(error);
  int count = 0;
  return parse_part(text, 1, count);
}

Result<std::vector<YamlValue>> parse_yaml_documents(std::string_view text) {
  if (auto error = yaml_size_error(text)) return *std::move(error);
  std::vector<YamlValue> documents;
  int count = 0;
  for (const YamlPart& part : yaml_parts_of(text)) {
    MUSTER_TRY(YamlValue document, parse_part(part.text, part.first_line, count));
    if (document.type == YamlValue::Type::kNull) continue;
    if (documents.size() == kMaxYamlDocuments) {
      return yaml_error_at(part.first_line,
                           "more than " + std::to_string(kMaxYamlDocuments) + " documents");
    }
    documents.push_back(std::move(document));
  }
  return documents;
}

}  // namespace muster::base
