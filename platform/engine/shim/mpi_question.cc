#include "engine/shim/mpi_question.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/units.h"
#include "engine/shim/channels.h"
#include "engine/shim/exec.h"

namespace muster::engine {

using Steady = std::chrono::steady_clock;

namespace {

constexpr std::string_view kKnown = "mpi ";
constexpr std::string_view kUnknown = "mpi? ";

/// More than the output of any `mpirun --version`.
constexpr size_t kMostVersionOutput = 64 << 10;
constexpr size_t kShownOfAnswer = 200;

/// The first line, without control characters, since it goes to a log and to terminals.
std::string first_line_of(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of("\r\n"), text.size());
  const size_t end = std::min(text.find_first_of("\r\n", begin), text.size());
  std::string line(text.substr(begin, std::min(end - begin, kShownOfAnswer)));
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return line;
}

/// Reads the output of the program until it ends or has printed enough. nullopt: interrupted.
std::optional<std::string> read_version_output(const base::Child& child,
                                               const base::UniqueFd& output,
                                               const MpiQuestion& question) {
  const Steady::time_point deadline = Steady::now() + question.patience;
  std::string printed;
  std::array<char, 4096> buffer;
  bool ended = false;
  while (printed.size() < kMostVersionOutput) {
    const ssize_t count = ::read(output.get(), buffer.data(), buffer.size());
    if (count > 0) printed.append(buffer.data(), static_cast<size_t>(count));
    if (count > 0 || (count < 0 && errno == EINTR)) continue;
    // A process that the program has left behind may keep the pipe open: the program's end counts.
    if (count == 0 || ended) break;
    std::array<pollfd, 3> watched{{{output.get(), POLLIN, 0},
                                   {child.pidfd.get(), POLLIN, 0},
                                   {question.interrupted_by, POLLIN, 0}}};
    const int wait = milliseconds_of(deadline - Steady::now());
    if (::poll(watched.data(), watched.size(), wait) == 0) break;
    if (watched[2].revents != 0) return std::nullopt;
    ended = watched[1].revents != 0;
  }
  return printed;
}

}  // namespace

std::optional<MpiAnswer> ask_mpi(const std::string& program, const MpiQuestion& question) {
  auto path = base::find_program(program, question.environment);
  auto output = make_output_pipe();
  if (!path || !output) return std::nullopt;
  const auto child = base::spawn(
      {.argv = {program, "--version"},
       .program = *std::move(path),
       .environment = question.environment,
       .descriptors = {{output->there.get(), STDOUT_FILENO}, {output->there.get(), STDERR_FILENO}},
       .new_session = true,
       .folder = question.folder});
  output->there.reset();
  if (!child) return std::nullopt;
  const auto printed = read_version_output(*child, output->here, question);
  ::kill(-child->pid, SIGKILL);
  [[maybe_unused]] const auto status = base::wait_for(*child);
  if (!printed) return std::nullopt;
  return MpiAnswer{.version = job::read_mpi_version(*printed),
                   .first_line = first_line_of(*printed)};
}

const launch::MpiChoice::Variant& variant_for(const launch::MpiChoice& choice,
                                              const MpiAnswer& answer) {
  static const launch::MpiChoice::Variant kNothing;
  const auto found =
      choice.variants.find(answer.version ? answer.version->kind : job::MpiKind::kOpenMpi);
  return found == choice.variants.end() ? kNothing : found->second;
}

void add_variables(const launch::MpiChoice::Variant& variant,
                   std::vector<std::string>& environment) {
  environment = merged(environment, variant.environment);
}

base::Result<void> copy_files(const launch::MpiChoice::Variant& variant,
                              const std::string& generated_folder) {
  const std::filesystem::path folder(generated_folder);
  for (const auto& [target, source] : variant.files) {
    MUSTER_TRY(const std::string content, base::read_file(folder / source));
    const base::UniqueFd file(::open((folder / target).c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return base::system_error("cannot write '" + target + "'", errno);
    MUSTER_CHECK(base::write_all(file.get(), content));
  }
  return {};
}

std::string notice_of(const MpiAnswer& answer, const launch::MpiChoice& choice) {
  const std::string printed = answer.first_line.empty() ? "nothing" : "'" + answer.first_line + "'";
  return "'" + choice.program + " --version' printed " + printed +
         ": Muster does not support this MPI and treats it as Open MPI";
}

std::string encode(const MpiAnswer& answer) {
  if (!answer.version) return std::string(kUnknown) + answer.first_line;
  return std::string(kKnown) + std::to_string(static_cast<int>(answer.version->kind)) + " " +
         std::to_string(answer.version->major) + " " + answer.version->version;
}

std::optional<MpiAnswer> read_mpi_answer(std::string_view message) {
  if (message.starts_with(kUnknown)) {
    return MpiAnswer{.version = {}, .first_line = std::string(message.substr(kUnknown.size()))};
  }
  if (!message.starts_with(kKnown)) return std::nullopt;
  message.remove_prefix(kKnown.size());
  const size_t first = message.find(' ');
  const size_t second = message.find(' ', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return std::nullopt;
  const auto kind = base::number_of<int>(message.substr(0, first));
  const auto major = base::number_of<int>(message.substr(first + 1, second - first - 1));
  constexpr int kLastKind = static_cast<int>(job::MpiKind::kIntel);
  if (!kind || !major || *kind < 0 || *kind > kLastKind) return std::nullopt;
  return MpiAnswer{.version = job::MpiVersion{.kind = static_cast<job::MpiKind>(*kind),
                                              .major = *major,
                                              .version = std::string(message.substr(second + 1))},
                   .first_line = {}};
}

}  // namespace muster::engine
