#include "dialects/runai/key_values.h"

#include <algorithm>

#include "base/text.h"

namespace muster::dialects::runai {

namespace {

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

std::string unknown_key(const std::string& key, const KnownKeys& known) {
  std::vector<std::string> all = known.with_value;
  all.insert(all.end(), known.alone.begin(), known.alone.end());
  std::string what = "has no '" + key + "'";
  const std::string meant = base::nearest(key, all);
  if (!meant.empty()) return what + "; did you mean '" + meant + "'?";
  what += "; there are";
  for (const std::string& name : all) what += " " + name;
  return what;
}

/// A piece without '=' that is no key is not repeated: it may be the end of a password.
std::string piece_without_value(const std::string& piece, const KnownKeys& known) {
  if (contains(known.with_value, piece)) return "'" + piece + "' has no value";
  return "is a list of key=value with ',' between them, and one piece of it has no '='";
}

}  // namespace

KeyValues read_key_values(const std::string& flag, const std::string& text, const KnownKeys& known,
                          cli::FlagReader& reader) {
  KeyValues values;
  for (const std::string& piece : base::split(text, ',')) {
    const size_t equals = piece.find('=');
    const std::string key = piece.substr(0, equals);
    const bool has_value = equals != std::string::npos;
    if (!has_value && !contains(known.alone, key)) {
      reader.fault(flag, piece_without_value(piece, known));
    } else if (has_value && !contains(known.with_value, key)) {
      reader.fault(flag, unknown_key(key, known));
    } else if (!values.emplace(key, has_value ? piece.substr(equals + 1) : "true").second) {
      reader.fault(flag, "has '" + key + "' twice");
    }
  }
  return values;
}

std::string value_of(const KeyValues& values, const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? "" : found->second;
}

std::map<std::string, std::string> read_pairs(const std::string& flag, const std::string& advice,
                                              cli::FlagReader& reader) {
  std::map<std::string, std::string> pairs;
  for (const std::string& text : reader.texts(flag)) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      reader.fault(flag, "'" + text + "' has no value; " + advice);
    } else {
      pairs[text.substr(0, equals)] = text.substr(equals + 1);
    }
  }
  return pairs;
}

}  // namespace muster::dialects::runai
