#include "server/metrics_text.h"

#include <array>
#include <charconv>
#include <cmath>

namespace muster::server {

namespace {

/// A quote is escaped in values of labels, and not in help.
std::string escaped(std::string_view text, bool quote) {
  std::string out;
  out.reserve(text.size());
  for (const char letter : text) {
    if (letter == '\\' || (quote && letter == '"')) out += '\\';
    if (letter == '\n') {
      out += "\\n";
    } else {
      out += letter;
    }
  }
  return out;
}

}  // namespace

void MetricsText::family(std::string name, std::string_view type, std::string_view help) {
  name_ = std::move(name);
  text_ += "# HELP " + name_ + " " + escaped(help, false) + "\n";
  text_ += "# TYPE " + name_ + " " + std::string(type) + "\n";
}

void MetricsText::line(const std::string& name, const Labels& labels, double value) {
  text_ += name;
  char separator = '{';
  for (const auto& [label, text] : labels) {
    text_ += separator;
    text_ += label + "=\"" + escaped(text, true) + "\"";
    separator = ',';
  }
  if (!labels.empty()) text_ += '}';
  text_ += " " + number(value) + "\n";
}

std::string MetricsText::number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

}  // namespace muster::server
