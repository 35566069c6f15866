// What the readers of slurmrestd's answers share: members that may be written in several ways, and
// reading a large answer without keeping what nobody asks for.
//
// Private to rest_json*.cc.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/result.h"

namespace muster::engine::slurm::rest {

using nlohmann::json;

/// In Unix time: a Time cannot hold much more.
constexpr int64_t kLatestSecond = 9'000'000'000;

/// What is at `key`, or null.
const json& at(const json& object, std::string_view key);
/// Empty where there is none. A list of texts is one with commas.
std::string text_at(const json& object, std::string_view key);
/// A text, a list of texts, or words with commas; each without spaces around it.
std::vector<std::string> texts_at(const json& object, std::string_view key);
/// 5, "5" or {"set": true, "infinite": false, "number": 5}. Nothing: there is none, or it has no
/// end.
std::optional<int64_t> number_at(const json& object, std::string_view key);

/// What `what` is, of an answer whose members of these names are wanted, at whatever depth; null,
/// with an error, where it is no JSON object. `what`: "the jobs".
base::Result<json> parse(std::string_view body, const std::string& what,
                         const std::unordered_set<std::string_view>& wanted);

base::Error no_such_answer(const std::string& what, const std::string& why);

}  // namespace muster::engine::slurm::rest
