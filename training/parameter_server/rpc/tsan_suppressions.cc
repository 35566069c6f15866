// Debian's gRPC, protobuf and OpenSSL are not instrumented. The thread sanitizer does not see how
// they pass memory between threads, and reports races. Reports with their frames are suppressed.
// The roster and the model, which run on their threads, have tests of their own without gRPC.

extern "C" const char* __tsan_default_options();   // NOLINT
extern "C" const char* __tsan_default_options() {  // NOLINT
  // Accesses inside of these libraries are not checked at all: searching a suppression for each
  // part of a stream takes minutes, during which connections run into their time limits.
  return "ignore_noninstrumented_modules=1";
}

extern "C" const char* __tsan_default_suppressions();   // NOLINT: the sanitizer's name
extern "C" const char* __tsan_default_suppressions() {  // NOLINT
  return "race:libgrpc\n"
         "race:libgpr\n"
         "race:libprotobuf\n"
         "race:libabsl\n"
         "race:libssl\n"
         "race:libcrypto\n"
         "race:grpc::\n"
         "race:grpc_core::\n"
         "deadlock:libgrpc\n"
         "mutex:libgrpc\n";
}
