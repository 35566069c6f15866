// For tests: parses Prometheus' text format 0.0.4 and reports the first fault.
#pragma once

#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace muster::server {

struct ParsedMetrics {
  std::string fault;                      ///< the first; empty: none
  std::map<std::string, double> samples;  ///< "name{label=value,other=value}", unescaped
  std::map<std::string, std::string> types;
};

class MetricsParser {
 public:
  ParsedMetrics parse(std::string_view text) {
    if (!text.ends_with('\n')) fail("the last line has no end");
    while (!text.empty() && result_.fault.empty()) {
      const size_t end = text.find('\n');
      line(text.substr(0, end));
      text.remove_prefix(end + 1);
    }
    end_family();
    return result_;
  }

 private:
  void fail(const std::string& what) {
    if (result_.fault.empty()) result_.fault = what;
  }

  void line(std::string_view text) {
    if (text.starts_with("# HELP ")) return begin_family(text.substr(7));
    if (text.starts_with("# TYPE ")) return set_type(text.substr(7));
    sample(text);
  }

  void begin_family(std::string_view text) {
    end_family();
    family_ = text.substr(0, text.find(' '));
    type_.clear();
    if (!is_name(family_)) fail("no name: " + family_);
    if (result_.types.contains(family_)) fail("twice: " + family_);
  }

  void set_type(std::string_view text) {
    const std::string name(text.substr(0, text.find(' ')));
    type_ = text.substr(std::min(text.size(), name.size() + 1));
    if (name != family_) fail("a type without its help: " + name);
    if (type_ != "counter" && type_ != "gauge" && type_ != "histogram") fail("type " + type_);
    if ((type_ == "counter") != name.ends_with("_total")) fail("not named as a counter: " + name);
    result_.types[name] = type_;
  }

  void sample(std::string_view text) {
    const size_t name_end = text.find_first_of("{ ");
    const std::string name(text.substr(0, name_end));
    if (name_end == std::string_view::npos || type_.empty() || !belongs(name)) {
      return fail("a sample of no family: " + std::string(text));
    }
    text.remove_prefix(name_end);
    std::string key = name;
    std::optional<std::string> bound;
    if (text.front() == '{' && !labels(text, key, bound)) {
      return fail("labels of " + name);
    }
    if (!text.starts_with(' ')) return fail("no space before the value of " + name);
    const std::string number(text.substr(1));
    char* number_end = nullptr;
    const double value = std::strtod(number.c_str(), &number_end);
    if (number.empty() || *number_end != '\0') return fail("no number: " + number);
    if (!result_.samples.emplace(key, value).second) return fail("twice: " + key);
    if (type_ == "histogram") part_of_histogram(name, bound, value);
  }

  bool belongs(const std::string& name) const {
    if (type_ != "histogram") return name == family_;
    return name == family_ + "_bucket" || name == family_ + "_sum" || name == family_ + "_count";
  }

  bool labels(std::string_view& text, std::string& key, std::optional<std::string>& bound) {
    key += '{';
    std::set<std::string> seen;
    do {
      text.remove_prefix(1);
      const size_t equals = text.find("=\"");
      if (equals == std::string_view::npos) return false;
      const std::string label(text.substr(0, equals));
      text.remove_prefix(equals + 2);
      std::string value;
      while (!text.empty() && text.front() != '"') {
        if (text.front() == '\\') {
          if (text.size() < 2) return false;
          const char escaped = text[1];
          if (escaped != 'n' && escaped != '\\' && escaped != '"') return false;
          value += escaped == 'n' ? '\n' : escaped;
          text.remove_prefix(2);
          continue;
        }
        value += text.front();
        text.remove_prefix(1);
      }
      if (text.empty() || !is_name(label) || !seen.insert(label).second) return false;
      text.remove_prefix(1);
      key += (key.ends_with('{') ? "" : ",") + label + "=" + value;
      if (label == "le") bound = value;
    } while (text.starts_with(','));
    if (!text.starts_with('}')) return false;
    text.remove_prefix(1);
    key += '}';
    return true;
  }

  void part_of_histogram(const std::string& name, const std::optional<std::string>& bound,
                         double value) {
    if (name.ends_with("_count")) count_ = value;
    if (!name.ends_with("_bucket")) return;
    if (!bound) return fail("a bucket without its bound");
    const double upto = std::strtod(bound->c_str(), nullptr);
    if (bucket_ && (value < *bucket_ || upto <= bound_)) fail("buckets of " + family_);
    bucket_ = value;
    bound_ = upto;
    infinite_ = *bound == "+Inf";
  }

  void end_family() {
    if (type_ == "histogram" && (!infinite_ || count_ != bucket_)) fail("no end: " + family_);
    bucket_.reset();
    count_.reset();
    infinite_ = false;
  }

  static bool is_name(std::string_view name) {
    if (name.empty() || (name.front() >= '0' && name.front() <= '9')) return false;
    return name.find_first_not_of(
               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:") ==
           std::string_view::npos;
  }

  ParsedMetrics result_;
  std::string family_;
  std::string type_;
  std::optional<double> bucket_;
  std::optional<double> count_;
  double bound_ = 0;
  bool infinite_ = false;
};

inline ParsedMetrics parse_metrics(std::string_view text) {
  return MetricsParser().parse(text);
}

}  // namespace muster::server
