#include "cli/command_parts.h"

#include <iterator>
#include <utility>

namespace muster::cli {

namespace {

Positionals name_positionals(Offer offer, size_t least, size_t most) {
  return {.name = "NAME", .least = least, .most = most, .choices = {}, .offer = offer};
}

}  // namespace

Flags operator+(Flags left, Flags right) {
  left.insert(left.end(), std::make_move_iterator(right.begin()),
              std::make_move_iterator(right.end()));
  return left;
}

Flags output_flag(std::vector<std::string> formats) {
  std::string help = "how to print: " + formats.front();
  for (size_t i = 1; i < formats.size(); ++i) help += ", " + formats[i];
  return {{.name = "--output",
           .letter = "-o",
           .value = "FORMAT",
           .help = help,
           .choices = std::move(formats),
           .offer = Offer::kChoices}};
}

Flags list_output_flag() {
  return output_flag({"table", "json", "yaml", "names"});
}

Flags task_flag(const std::string& help) {
  return {{.name = "--task", .value = "TASK", .help = help}};
}

Positionals new_name() {
  return name_positionals(Offer::kNothing, 1, 1);
}
Positionals one_of(Offer offer) {
  return name_positionals(offer, 1, 1);
}
Positionals some_of(Offer offer) {
  return name_positionals(offer, 1, kAnyNumber);
}
Positionals any_of(Offer offer) {
  return name_positionals(offer, 0, kAnyNumber);
}
Positionals maybe_one_of(Offer offer) {
  return name_positionals(offer, 0, 1);
}

}  // namespace muster::cli
