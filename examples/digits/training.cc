#include "training.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <initializer_list>
#include <utility>

namespace muster::digits {

std::uint64_t checksum_of(std::span<const float> weights) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::byte byte : std::as_bytes(weights)) {
    hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3u;
  }
  return hash;
}

std::string checksum_text(std::uint64_t checksum) {
  std::array<char, 19> text;
  std::snprintf(text.data(), text.size(), "0x%016llx", static_cast<unsigned long long>(checksum));
  return text.data();
}

namespace {

constexpr std::size_t kBarWidth = 30;
// Often enough to show progress, and rarely enough to cost nothing.
constexpr std::chrono::milliseconds kBarEvery{100};

int digits_of(int number) {
  return static_cast<int>(std::to_string(number).size());
}

// With as many digits as are needed to read the same number again.
std::string number_json(std::optional<double> number) {
  if (!number || !std::isfinite(*number)) return "null";
  std::array<char, 32> text;
  const auto written = std::to_chars(text.data(), text.data() + text.size(), *number);
  return {text.data(), written.ptr};
}

// With `decimals`, in at least `width` columns; "-" if the number was not measured.
std::string number_text(std::optional<double> number, int width, int decimals) {
  std::string text = "-";
  if (number) {
    std::array<char, 400> digits;  // the largest double has 309 digits
    std::snprintf(digits.data(), digits.size(), "%.*f", decimals, *number);
    text = digits.data();
  }
  const auto wide = static_cast<std::size_t>(width);
  return std::string(wide - std::min(wide, text.size()), ' ') + text;
}

std::string percent_text(std::optional<double> part, int width) {
  return number_text(part ? std::optional(100 * *part) : std::nullopt, width, 2) + " %";
}

// A JSON object of names and values that need no escape.
std::string object_json(std::initializer_list<std::pair<const char*, std::string>> members) {
  std::string text = "{";
  for (const auto& [name, value] : members) {
    if (text.size() > 1) text += ", ";
    text += "\"" + std::string(name) + "\": " + value;
  }
  return text + "}";
}

void print_text(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

std::string count_of(std::uint64_t number, std::string_view noun) {
  return std::to_string(number) + " " + std::string(noun) + (number == 1 ? "" : "s");
}

std::string epoch_text(const EpochReport& report, int epochs) {
  const std::string all = std::to_string(epochs);
  const std::string epoch = std::to_string(report.epoch);
  return "epoch " + std::string(all.size() - std::min(all.size(), epoch.size()), ' ') + epoch +
         "/" + all + "  loss " + number_text(report.loss, 6, 4) + "  train " +
         percent_text(report.train_accuracy, 6) + "  test " +
         percent_text(report.test_accuracy, 6) + "  " +
         number_text(report.images_per_second, 8, 0) + " images/s";
}

std::string outcome_text(const Outcome& outcome, std::string_view holders) {
  return "test accuracy: " + percent_text(outcome.test_accuracy, 0) +
         "\nimages/s: " + number_text(outcome.images_per_second, 0, 0) +
         "\nweights checksum: " + checksum_text(outcome.checksum) + (holders.empty() ? "" : " ") +
         std::string(holders) + "\n";
}

std::string epoch_json(const EpochReport& report) {
  return object_json({{"epoch", std::to_string(report.epoch)},
                      {"seconds", number_json(report.seconds)},
                      {"images", std::to_string(report.images)},
                      {"images_per_second", number_json(report.images_per_second)},
                      {"loss", number_json(report.loss)},
                      {"train_accuracy", number_json(report.train_accuracy)},
                      {"test_accuracy", number_json(report.test_accuracy)}});
}

std::string outcome_json(const Outcome& outcome) {
  return object_json({{"test_accuracy", number_json(outcome.test_accuracy)},
                      {"images_per_second", number_json(outcome.images_per_second)},
                      {"weights_checksum", '"' + checksum_text(outcome.checksum) + '"'}});
}

Progress::Progress(int epochs, Output output)
    : epochs_(epochs), output_(output), on_terminal_(::isatty(STDERR_FILENO) == 1) {}

void Progress::show_step(int epoch, std::size_t step, std::size_t steps) {
  const auto now = std::chrono::steady_clock::now();
  if (!on_terminal_ || now < next_bar_) return;
  next_bar_ = now + kBarEvery;
  bar_is_shown_ = true;
  const std::string bar(kBarWidth * step / steps, '=');
  std::fprintf(stderr, "\repoch %*d/%d  [%-*s] %zu/%zu", digits_of(epochs_), epoch, epochs_,
               static_cast<int>(kBarWidth), bar.c_str(), step, steps);
  std::fflush(stderr);
}

void Progress::wipe_bar() {
  if (!bar_is_shown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  bar_is_shown_ = false;
}

void Progress::show_epoch(const EpochReport& report) {
  wipe_bar();
  const bool is_json = output_ == Output::kJson;
  print_text((is_json ? epoch_json(report) : epoch_text(report, epochs_)) + "\n");
}

void Progress::show_outcome(const Outcome& outcome, std::string_view holders) {
  wipe_bar();
  const bool is_json = output_ == Output::kJson;
  print_text(is_json ? outcome_json(outcome) + "\n" : outcome_text(outcome, holders));
}

}  // namespace muster::digits
