#include "cli/slurm_flags.h"

#include <array>
#include <utility>

namespace muster::cli {

namespace {

constexpr std::array<std::pair<const char*, std::string job::SlurmSpec::*>, 5> kFields{
    {{"partition", &job::SlurmSpec::partition},
     {"account", &job::SlurmSpec::account},
     {"qos", &job::SlurmSpec::qos},
     {"reservation", &job::SlurmSpec::reservation},
     {"constraint", &job::SlurmSpec::constraint}}};

}  // namespace

job::SlurmSpec read_slurm_flags(FlagReader& reader) {
  job::SlurmSpec slurm;
  for (const auto& [name, member] : kFields) {
    slurm.*member = reader.text("--slurm-" + std::string(name));
  }
  return slurm;
}

YamlFields::Keys slurm_keys(YamlFields& fields, job::SlurmSpec& slurm) {
  return {{"slurm", [&fields, &slurm](const YamlValue& value) {
             if (!fields.is("slurm", value, YamlValue::Type::kMap)) return;
             YamlFields::Keys keys;
             for (const auto& [name, member] : kFields) {
               keys.emplace_back(
                   name, [&fields, path = "slurm." + std::string(name), &target = slurm.*member](
                             const YamlValue& inner) { fields.text(path, inner, target); });
             }
             fields.map(value, "slurm.", keys);
           }}};
}

std::string slurm_words(const job::SlurmSpec& slurm) {
  std::string words;
  for (const auto& [name, member] : kFields) {
    if ((slurm.*member).empty()) continue;
    words += (words.empty() ? "" : ", ") + std::string(name) + " " + slurm.*member;
  }
  return words;
}

}  // namespace muster::cli
