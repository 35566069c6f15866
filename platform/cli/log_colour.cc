#include "cli/log_colour.h"

#include <array>
#include <cstdint>
#include <optional>

#include "base/number.h"

namespace muster::cli {

namespace {

// Readable on black and on white alike; red is left to errors.
constexpr std::array<std::string_view, 10> kTaskColours{
    "\x1b[32m", "\x1b[36m", "\x1b[33m", "\x1b[35m", "\x1b[34m",
    "\x1b[92m", "\x1b[96m", "\x1b[93m", "\x1b[95m", "\x1b[94m"};

/// The number of "worker-3" behind `role`.
std::optional<size_t> number_in(std::string_view task, std::string_view role) {
  if (!task.starts_with(role)) return std::nullopt;
  return base::number_of<size_t>(task.substr(role.size()));
}

/// Of a name that follows no rule: FNV-1a over its bytes.
size_t hash_of(std::string_view name) {
  uint32_t hash = 2166136261U;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  return hash;
}

size_t place_of(const job::LogRecord& record) {
  if (record.rank) return static_cast<size_t>(*record.rank) + 1;
  if (const auto worker = number_in(record.task, "worker-")) return *worker + 1;
  if (const auto server = number_in(record.task, "ps-")) {
    return kTaskColours.size() - 1 - *server % kTaskColours.size();
  }
  for (const std::string_view leader : {"launcher", "main", "chief", "master"}) {
    if (record.task == leader) return 0;
  }
  return hash_of(record.task);
}

}  // namespace

std::string_view colour_of(const job::LogRecord& record) {
  return kTaskColours[place_of(record) % kTaskColours.size()];
}

}  // namespace muster::cli
