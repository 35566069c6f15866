#include "launch/mpirun_command.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace muster::launch {

namespace {

constexpr std::array<std::string_view, 6> kOpenMpiLaunchers{
    "mpirun", "mpiexec", "orterun", "mpirun.openmpi", "mpiexec.openmpi", "orterun.openmpi"};

constexpr std::array<std::string_view, 5> kOtherLaunchers{
    "mpiexec.hydra", "mpirun.hydra", "mpiexec.mpich", "mpirun.mpich", "prterun"};

// With one dash or two, as Open MPI takes them.
constexpr std::array<std::string_view, 9> kOutputOptions{"output-filename",
                                                         "output",
                                                         "tag-output",
                                                         "timestamp-output",
                                                         "xml",
                                                         "xterm",
                                                         "xml-file",
                                                         "merge-stderr-to-stdout",
                                                         "output-directory"};

std::string_view name_of(std::string_view program) {
  return program.substr(program.rfind('/') + 1);
}

bool is_among(std::string_view name, const auto& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_output_option(std::string_view word) {
  if (!word.starts_with('-')) return false;
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  return is_among(word, kOutputOptions);
}

}  // namespace

bool is_plain_mpirun(const std::vector<std::string>& argv) {
  if (argv.empty()) return false;
  return is_among(name_of(argv.front()), kOpenMpiLaunchers) &&
         std::none_of(argv.begin(), argv.end(), is_output_option);
}

std::optional<std::string> launcher_of(const std::vector<std::string>& argv) {
  constexpr std::string_view kBetweenWords = " \t\n;&|('\"";
  for (const std::string_view argument : argv) {
    size_t at = 0;
    while ((at = argument.find_first_not_of(kBetweenWords, at)) != std::string_view::npos) {
      const size_t end = std::min(argument.find_first_of(kBetweenWords, at), argument.size());
      const std::string_view word = argument.substr(at, end - at);
      const std::string_view name = name_of(word);
      if (is_among(name, kOpenMpiLaunchers) || is_among(name, kOtherLaunchers))
        return std::string(word);
      at = end;
    }
  }
  return std::nullopt;
}

std::vector<std::string_view> words_of(const std::vector<std::string>& command) {
  constexpr const char* kBetween = " \t\n;&|(";
  std::vector<std::string_view> words;
  for (const std::string_view argument : command) {
    size_t at = 0;
    while (at < argument.size()) {
      const size_t begin = argument.find_first_not_of(kBetween, at);
      if (begin == std::string_view::npos) break;
      const size_t end = std::min(argument.find_first_of(kBetween, begin), argument.size());
      words.push_back(argument.substr(begin, end - begin));
      at = end;
    }
  }
  return words;
}

bool is_file_named(std::string_view word, std::string_view name) {
  constexpr const char* kQuotes = "'\"";
  word = word.substr(0, word.find_last_not_of(kQuotes) + 1);
  word.remove_prefix(word.find_last_of("/='\"") + 1);
  return word == name;
}

}  // namespace muster::launch
