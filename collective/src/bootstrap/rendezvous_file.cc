#include "bootstrap/rendezvous_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <vector>

#include "bootstrap/crypto.h"
#include "transport/socket.h"

namespace muster::collective {
namespace {

constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

Error not_private(const std::string& path, const std::string& what) {
  return {ErrorCode::kConfiguration, path + " " + what + ", so the key in it would not be safe",
          "remove it, or set MUSTER_RENDEZVOUS to meet at an address instead"};
}

Status check_private(const std::string& path, const struct stat& status, mode_t kind) {
  if ((status.st_mode & S_IFMT) != kind) {
    return not_private(path, kind == S_IFDIR ? "is not a folder" : "is not a regular file");
  }
  if (status.st_uid != ::geteuid()) {
    return not_private(path, "belongs to user " + std::to_string(status.st_uid));
  }
  if ((status.st_mode & kOthers) != 0) return not_private(path, "is open to other users");
  return {};
}

std::string folder_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

Status check_folder(const std::string& folder) {
  struct stat status = {};
  if (::lstat(folder.c_str(), &status) != 0) return system_error("cannot examine " + folder, errno);
  return check_private(folder, status, S_IFDIR);
}

// The temporary name under which the file is written before it is renamed.
std::string draft_of(const std::string& path) {
  return path + "." + std::to_string(::getpid()) + ".new";
}

Status write_new(const std::string& path, const std::string& text) {
  // A killed process may have left a draft of this name, if its process id is used again.
  ::unlink(path.c_str());
  const Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return system_error("cannot create " + path, errno);
  const ssize_t written = ::write(file.get(), text.data(), text.size());
  if (written != static_cast<ssize_t>(text.size())) {
    return system_error("cannot write " + path, written < 0 ? errno : ENOSPC);
  }
  return {};
}

// "endpoint key\n"
std::optional<Meeting> parse_meeting(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos || !text.ends_with('\n')) return std::nullopt;
  std::optional<Bytes> key = from_hex(text.substr(space + 1, text.size() - space - 2));
  if (!key || key->size() < kShortestKeyBytes) return std::nullopt;
  return Meeting{std::string(text.substr(0, space)), *std::move(key)};
}

std::string assignments_of(const Lookup& variable, std::span<const char* const> names) {
  std::string values;
  for (const char* const name : names) {
    const std::optional<std::string> value = variable(name);
    if (value) values += std::string(name) + "=" + *value + "\n";
  }
  return values;
}

// A parent process, or a parent of a parent. Its id may be used again, but not with the same start
// time.
struct Ancestor {
  std::string name;
  std::string identity;
  int parent = 0;
};

std::optional<Ancestor> look_at(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  // "id (name) state parent ... start ...": only the name may contain spaces and brackets.
  const std::size_t open = line.find('(');
  const std::size_t close = line.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return std::nullopt;
  std::istringstream rest(line.substr(close + 1));
  std::vector<std::string> fields;
  for (std::string field; rest >> field;) fields.push_back(field);
  constexpr std::size_t kParent = 1;
  constexpr std::size_t kStart = 19;  // the 22nd field of the line
  if (fields.size() <= kStart) return std::nullopt;
  return Ancestor{line.substr(open + 1, close - open - 1),
                  std::to_string(process) + " since " + fields[kStart],
                  std::atoi(fields[kParent].c_str())};
}

std::optional<Ancestor> find_ancestor(int process,
                                      const std::function<bool(const std::string&)>& is_it) {
  std::optional<Ancestor> at = look_at(process);
  while (at && at->parent > 1) {
    at = look_at(at->parent);
    if (at && is_it(at->name)) return at;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> run_of_mpirun(const Lookup& variable) {
  // Open MPI 4.1 and 5.0 set these variables to equal values on all ranks of one mpirun. The
  // namespace is the number of the run and may be used again. The ports of the servers, and the
  // nonce that 4.1 passes to its transports, are unique.
  constexpr std::array kIdentifying = {"PMIX_NAMESPACE",
                                       "PMIX_SERVER_URI41",
                                       "PMIX_SERVER_URI4",
                                       "PMIX_SERVER_URI3",
                                       "PMIX_SERVER_URI2",
                                       "OMPI_MCA_orte_hnp_uri",
                                       "OMPI_MCA_orte_precondition_transports"};
  std::string run = assignments_of(variable, kIdentifying);
  if (!variable("PMIX_NAMESPACE") || run.find("_URI") == std::string::npos) return std::nullopt;
  return run;
}

std::optional<std::string> run_of_hydra(int process) {
  // Hydra's proxy starts all ranks of a host, perhaps through a shell or a wrapper.
  const std::optional<Ancestor> proxy = find_ancestor(process, [](const std::string& name) {
    return name.starts_with("hydra") || name.starts_with("pmi_proxy");
  });
  if (!proxy) return std::nullopt;
  return "hydra " + proxy->identity;
}

std::optional<std::string> run_of_slurm(const Lookup& variable) {
  if (!variable("SLURM_JOB_ID") || !variable("SLURM_STEP_ID")) return std::nullopt;
  constexpr std::array kIdentifying = {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_CLUSTER_NAME"};
  return assignments_of(variable, kIdentifying);
}

std::optional<std::string> run_of_torchrun(const Lookup& variable, int process) {
  // The ranks of a host are children of torchrun's agent.
  const std::optional<Ancestor> agent =
      find_ancestor(process, [](const std::string&) { return true; });
  if (!agent || !variable("MASTER_PORT")) return std::nullopt;
  constexpr std::array kIdentifying = {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID",
                                       "TORCHELASTIC_RESTART_COUNT"};
  return "torchrun " + agent->identity + "\n" + assignments_of(variable, kIdentifying);
}

std::string rendezvous_file_of(const std::string& run, const Lookup& variable) {
  const std::string name = to_hex(sha256(view_of(run))).substr(0, 32);
  const std::optional<std::string> runtime = variable("XDG_RUNTIME_DIR");
  struct stat status = {};
  if (runtime && !runtime->empty() && ::stat(runtime->c_str(), &status) == 0) {
    return *runtime + "/muster-collective/" + name;
  }
  return "/tmp/muster-collective-" + std::to_string(::geteuid()) + "/" + name;
}

Publication::~Publication() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

Result<Publication> publish(const std::string& path, const Meeting& meeting) {
  const std::string folder = folder_of(path);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return system_error("cannot create " + folder, errno);
  }
  if (Status checked = check_folder(folder); !checked) return checked.error();
  const std::string draft = draft_of(path);
  const std::string text = meeting.endpoint + " " + to_hex(meeting.key) + "\n";
  if (Status written = write_new(draft, text); !written) return written.error();
  // The rename is atomic: other ranks find the whole file or no file.
  if (::rename(draft.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    ::unlink(draft.c_str());
    return system_error("cannot create " + path, reason);
  }
  return Publication(path);
}

Result<std::optional<Meeting>> find_meeting(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file) {
    if (errno == ENOENT) return std::optional<Meeting>();
    return system_error("cannot open " + path, errno);
  }
  // The file is opened before its folder is checked: a folder checked first could be swapped before
  // open().
  if (Status checked = check_folder(folder_of(path)); !checked) return checked.error();
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) return system_error("cannot examine " + path, errno);
  if (Status checked = check_private(path, status, S_IFREG); !checked) return checked.error();
  std::array<char, 1024> buffer;
  const ssize_t size = ::read(file.get(), buffer.data(), buffer.size());
  if (size < 0) return system_error("cannot read " + path, errno);
  std::optional<Meeting> meeting = parse_meeting({buffer.data(), static_cast<std::size_t>(size)});
  if (!meeting) {
    return Error{ErrorCode::kConfiguration, path + " has no valid address of rank 0",
                 "remove it and start the job again"};
  }
  return meeting;
}

}  // namespace muster::collective
