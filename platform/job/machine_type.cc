#include "job/machine_type.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "job/spec_table.h"
#include "record/field.h"

namespace muster::job {

namespace {

constexpr size_t kMostSuggestions = 3;
constexpr size_t kMostListed = 40;

MachineType with_gpu(std::string model) {
  return {.resources = {.gpus = 1}, .gpu_model = std::move(model)};
}

/// The nearest names, in quotes: "'P100' or 'V100'"; empty without a similar name.
std::string suggestions(const MachineTypes& types, std::string_view unknown) {
  std::vector<std::string> candidates;
  std::map<std::string, std::string> as_written;
  for (const auto& [name, type] : types) {
    candidates.push_back(base::lower_case(name));
    as_written[base::lower_case(name)] = name;
  }
  std::string words;
  for (size_t found = 0; found < kMostSuggestions; ++found) {
    const std::string near = base::nearest(base::lower_case(unknown), candidates);
    if (near.empty()) break;
    words += (words.empty() ? "'" : " or '") + as_written[near] + "'";
    std::erase(candidates, near);
  }
  return words;
}

std::string names_of_types(const MachineTypes& types) {
  std::string names;
  size_t count = 0;
  for (const auto& [name, type] : types) {
    if (count++ == kMostListed) return names + " and more";
    names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

base::Error unknown_type(const MachineTypes& types, std::string_view name) {
  const std::string near = suggestions(types, name);
  return {.code = base::ErrorCode::kInvalid,
          .what = "there is no machine type '" + base::shortened(base::as_utf8(name)) + "'" +
                  (near.empty() ? "" : "; did you mean " + near + "?"),
          .advice = (near.empty() ? "the known types are " + names_of_types(types) + "; "
                                  : std::string()) +
                    "more can be added under machine_types in the server's configuration"};
}

}  // namespace

const MachineTypes& usual_machine_types() {
  static const MachineTypes kTypes{
      {"Air", {}},
      {"Standard", {}},
      {"Pro", {}},
      {"Advanced", {}},
      {"GPU+", with_gpu("Quadro M4000")},
      {"P4000", with_gpu("Quadro P4000")},
      {"P5000", with_gpu("Quadro P5000")},
      {"P6000", with_gpu("Quadro P6000")},
      {"V100", with_gpu("Tesla V100")},
      {"C1", {}},
      {"C2", {}},
      {"C3", {}},
      {"C4", {}},
      {"C5", {}},
      {"C6", {}},
      {"C7", {}},
      {"C8", {}},
      {"C9", {}},
      {"C10", {}},
      {"K80", with_gpu("Tesla K80")},
      {"P100", with_gpu("Tesla P100")},
      {"TPU", {}},
      {"p2.xlarge", with_gpu("Tesla K80")},
      {"p3.2xlarge", with_gpu("Tesla V100")},
      {"c5.xlarge", {}},
  };
  return kTypes;
}

MachineTypes machine_types_with(const MachineTypes& own) {
  MachineTypes all = own;
  for (const auto& [name, type] : usual_machine_types()) {
    const bool is_own =
        std::any_of(own.begin(), own.end(), [folded = base::lower_case(name)](const auto& it) {
          return base::lower_case(it.first) == folded;
        });
    if (!is_own) all.emplace(name, type);
  }
  return all;
}

base::Result<MachineType> find_machine_type(const MachineTypes& types, std::string_view name) {
  const auto exact = types.find(name);
  if (exact != types.end()) return exact->second;
  const std::string folded = base::lower_case(name);
  for (const auto& [candidate, type] : types) {
    if (base::lower_case(candidate) == folded) return type;
  }
  return unknown_type(types, name);
}

const ImageStandIn* find_stand_in(const ImageStandIns& all, std::string_view image) {
  const auto found = [&](std::string_view name) {
    const auto at = all.find(name);
    return at == all.end() ? nullptr : &at->second;
  };
  if (const ImageStandIn* exact = found(image)) return exact;
  image = image.substr(0, image.find('@'));
  if (const ImageStandIn* without_digest = found(image)) return without_digest;
  // A colon before the last slash belongs to the registry's port: localhost:5000/train.
  const size_t slash = image.rfind('/');
  const size_t colon = image.rfind(':');
  if (colon == std::string_view::npos || (slash != std::string_view::npos && colon < slash)) {
    return nullptr;
  }
  return found(image.substr(0, colon));
}

namespace {

record::Json for_shell(const record::Input& text) {
  if (text.value.text().empty()) text.note("is empty; give a command");
  return record::Json::array({"sh", "-c", std::string(text.value.text())});
}

}  // namespace

const record::Table& table_of(const MachineType*) {
  static const record::Table table = [] {
    std::vector<record::Row> rows =
        record::rows_of_member<&MachineType::resources>(record::table_for<Resources>().rows());
    rows.push_back(record::field<&MachineType::gpu_model>("gpu_model"));
    return record::table<MachineType>("MachineTypeClaim", std::move(rows));
  }();
  return table;
}

const record::Table& table_of(const ImageStandIn*) {
  static const record::Table table = record::table<ImageStandIn>(
      "ImageStandIn", {record::field<&ImageStandIn::command>("command", {.shorthand = for_shell}),
                       record::field<&ImageStandIn::folder>("folder"),
                       record::field<&ImageStandIn::environment>("environment")});
  return table;
}

}  // namespace muster::job
