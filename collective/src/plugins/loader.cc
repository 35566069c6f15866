#include "plugins/loader.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "plugins/plugin_backend.h"

namespace muster::collective {
namespace {

Error missing(std::string message, std::string advice) {
  return {ErrorCode::kConfiguration, std::move(message), std::move(advice)};
}

std::optional<std::string> secure_variable(const std::string& name) {
  const char* const value = ::secure_getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

// The folder of the library or program that contains this code.
std::string own_folder() {
  static constexpr int kLandmark = 0;
  Dl_info info = {};
  if (::dladdr(&kLandmark, &info) == 0 || info.dli_fname == nullptr) return ".";
  const std::string path = info.dli_fname;
  const std::size_t slash = path.rfind('/');
  // For a program that the shell found in PATH, `path` may be its bare name.
  if (slash != std::string::npos) return path.substr(0, slash);
  char* const real = ::realpath("/proc/self/exe", nullptr);
  if (real == nullptr) return ".";
  const std::string program = real;
  std::free(real);  // NOLINT: realpath gave it
  return program.substr(0, program.rfind('/'));
}

std::vector<std::string> split_path_list(const std::string& list) {
  std::vector<std::string> items;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin) items.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

std::string joined(const std::vector<std::string>& files) {
  std::string line;
  for (const std::string& file : files) line += (line.empty() ? "" : ", ") + file;
  return line;
}

}  // namespace

Result<std::string> plugin_named(const std::string& transport, const Lookup& variable) {
  if (transport == "nccl") return transport;
  if (transport != "mpi") {
    return missing("unknown transport '" + transport + "'",
                   "the transports are auto, shm, tcp, mpi and nccl");
  }
  if (const std::optional<std::string> chosen = variable("MUSTER_COLLECTIVE_MPI")) {
    if (*chosen == "openmpi" || *chosen == "mpich") return *chosen;
    return missing("MUSTER_COLLECTIVE_MPI is '" + *chosen + "', not openmpi or mpich", "");
  }
  if (variable("OMPI_COMM_WORLD_SIZE")) return std::string("openmpi");
  if (variable("PMI_RANK")) return std::string("mpich");
  return missing("the transport is mpi, but this process was not started by mpirun",
                 "start it with mpirun, or set MUSTER_COLLECTIVE_MPI to openmpi or mpich");
}

std::vector<std::string> plugin_files(const std::string& name, const Lookup& variable) {
  const std::string own = own_folder();
  std::vector<std::string> folders =
      split_path_list(variable("MUSTER_COLLECTIVE_PLUGIN_PATH").value_or(""));
  folders.insert(folders.end(), {own, own + "/muster-collective",
                                 own + "/../" MUSTER_COLLECTIVE_LIBDIR "/muster-collective"});
  for (std::string& folder : folders) folder += "/muster_collective_" + name + ".so";
  return folders;
}

Result<const MusterPlugin*> load_module(const std::string& name,
                                        const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    if (::access(file.c_str(), F_OK) != 0) continue;
    void* const module = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (module == nullptr) {
      return missing(
          "the plug-in '" + name + "' cannot be loaded: " + ::dlerror(),
          "install the libraries that it needs on this host, or choose another transport");
    }
    const auto entry = reinterpret_cast<MusterPluginEntry>(::dlsym(module, kMusterPluginEntry));
    if (entry == nullptr || entry()->version != MUSTER_PLUGIN_VERSION) {
      return missing(file + " is not a plug-in for this version of the library",
                     "install the plug-ins of the library's version");
    }
    return entry();
  }
  return missing("plug-in '" + name + "' not found; tried " + joined(files),
                 "set MUSTER_COLLECTIVE_PLUGIN_PATH to the folder that contains it");
}

Result<std::unique_ptr<Backend>> load_plugin(World& world, std::unique_ptr<Backend> bootstrap) {
  const auto load = [&]() -> Result<const MusterPlugin*> {
    const Result<std::string> name = plugin_named(world.options.transport, secure_variable);
    if (!name) return name.error();
    return load_module(*name, plugin_files(*name, secure_variable));
  };
  const Result<const MusterPlugin*> plugin = load();
  const Status own = plugin ? Status() : Status(plugin.error());
  if (Status all = agree(world, bootstrap.get(), own); !all) return all.error();
  Result<std::unique_ptr<PluginBackend>> backend =
      PluginBackend::open(world, **plugin, std::move(bootstrap));
  if (!backend) return backend.error();
  return std::unique_ptr<Backend>(*std::move(backend));
}

}  // namespace muster::collective
