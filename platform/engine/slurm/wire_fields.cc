#include "engine/slurm/wire_fields.h"

#include <nlohmann/json.hpp>

#include "engine/plain_cbor.h"

namespace muster::engine::slurm {

using nlohmann::json;

namespace {

template <class Pairs>
json list_of(const Pairs& pairs) {
  json list = json::array();
  for (const auto& [name, text] : pairs) list.push_back(json::array({binary(name), binary(text)}));
  return list;
}

}  // namespace

json binary(const std::string& text) {
  return json(json::binary_t({text.begin(), text.end()}));
}

json binaries(const std::vector<std::string>& texts) {
  json list = json::array();
  for (const std::string& text : texts) list.push_back(binary(text));
  return list;
}

json binary_pairs(const std::map<std::string, std::string>& pairs) {
  return list_of(pairs);
}

json binary_pairs(const std::vector<std::pair<std::string, std::string>>& pairs) {
  return list_of(pairs);
}

json error_json(const base::Error& error) {
  return {{"code", std::string(to_string(error.code))},
          {"what", binary(error.what.substr(0, kLongestWords))},
          {"advice", binary(error.advice.substr(0, kLongestWords))}};
}

json parse_fields(std::string_view text) {
  if (!is_plain_cbor(text)) throw BadField();
  return json::from_cbor(text);
}

std::string text_of(const json& value, size_t most) {
  if (!value.is_binary()) throw BadField();
  const json::binary_t& bytes = value.get_binary();
  if (bytes.size() > most) throw BadField();
  return {bytes.begin(), bytes.end()};
}

int64_t number_of(const json& value, int64_t least, int64_t most) {
  if (!value.is_number_integer()) throw BadField();
  const bool is_too_large =
      value.is_number_unsigned() &&
      value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  const auto number = value.get<int64_t>();
  if (is_too_large || number < least || number > most) throw BadField();
  return number;
}

Fields::Fields(const json& object) : object_(object) {
  if (!object.is_object()) throw BadField();
}

const json& Fields::at(const char* name) const {
  const auto found = object_.find(name);
  if (found == object_.end()) throw BadField();
  return *found;
}

bool Fields::has(const char* name) const {
  return object_.contains(name);
}

const json& Fields::list(const char* name) const {
  const json& value = at(name);
  if (!value.is_array()) throw BadField();
  return value;
}

std::string Fields::text(const char* name, size_t most) const {
  return text_of(at(name), most);
}

std::vector<std::string> Fields::texts(const char* name, size_t most) const {
  std::vector<std::string> texts;
  for (const json& text : list(name)) texts.push_back(text_of(text, most));
  return texts;
}

std::vector<std::pair<std::string, std::string>> Fields::pairs(const char* name) const {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const json& pair : list(name)) {
    if (!pair.is_array() || pair.size() != 2) throw BadField();
    pairs.emplace_back(text_of(pair[0], kAnyLength), text_of(pair[1], kAnyLength));
  }
  return pairs;
}

bool Fields::flag(const char* name) const {
  const json& value = at(name);
  if (!value.is_boolean()) throw BadField();
  return value.get<bool>();
}

uint64_t Fields::count(const char* name) const {
  const json& value = at(name);
  if (!value.is_number_unsigned()) throw BadField();
  return value.get<uint64_t>();
}

std::vector<int> Fields::numbers(const char* name) const {
  std::vector<int> numbers;
  for (const json& value : list(name)) {
    numbers.push_back(static_cast<int>(
        number_of(value, std::numeric_limits<int>::min(), std::numeric_limits<int>::max())));
  }
  return numbers;
}

base::Error Fields::error(const char* name) const {
  const Fields fields(at(name));
  const json& code = fields.at("code");
  if (!code.is_string()) throw BadField();
  return {.code = base::error_code_of(code.get_ref<const std::string&>()),
          .what = fields.text("what", kLongestWords),
          .advice = fields.text("advice", kLongestWords)};
}

std::optional<base::Error> Fields::error_if_any(const char* name) const {
  return has(name) ? std::optional(error(name)) : std::nullopt;
}

}  // namespace muster::engine::slurm
