// libpq, PostgreSQL's client library. It is loaded with the first PostgreSQL URL rather than at the
// start of the program: it depends on thirty libraries, which commands and servers with SQLite do
// not need.
//
// Functions have the names in libpq's manual: libpq().PQclear(result). Thread-safe, as libpq is.
#pragma once

#include <libpq-fe.h>

#include <string>

#include "base/result.h"

namespace muster::store {

/// Finds functions in a loaded library, and collects the missing ones.
class LoadedFunctions {
 public:
  /// Converts to a pointer to the function that it is assigned to.
  struct Address {
    void* address;
    template <class Function>
    operator Function*() const {  // NOLINT(google-explicit-constructor): that is its purpose
      return reinterpret_cast<Function*>(address);
    }
  };

  explicit LoadedFunctions(void* handle) : handle_(handle) {}
  Address operator()(const char* name);
  const std::string& missing() const { return missing_; }  ///< "PQone, PQother"

 private:
  void* handle_;
  std::string missing_;
};

/// The functions of libpq that the store uses.
struct PostgresLibrary {
  LoadedFunctions find;

  decltype(&::PQclear) PQclear = find("PQclear");
  decltype(&::PQcmdTuples) PQcmdTuples = find("PQcmdTuples");
  decltype(&::PQconnectdbParams) PQconnectdbParams = find("PQconnectdbParams");
  decltype(&::PQconninfoFree) PQconninfoFree = find("PQconninfoFree");
  decltype(&::PQconninfoParse) PQconninfoParse = find("PQconninfoParse");
  decltype(&::PQconsumeInput) PQconsumeInput = find("PQconsumeInput");
  decltype(&::PQenterPipelineMode) PQenterPipelineMode = find("PQenterPipelineMode");
  decltype(&::PQerrorMessage) PQerrorMessage = find("PQerrorMessage");
  decltype(&::PQexitPipelineMode) PQexitPipelineMode = find("PQexitPipelineMode");
  decltype(&::PQfinish) PQfinish = find("PQfinish");
  decltype(&::PQflush) PQflush = find("PQflush");
  decltype(&::PQfreemem) PQfreemem = find("PQfreemem");
  decltype(&::PQftype) PQftype = find("PQftype");
  decltype(&::PQgetResult) PQgetResult = find("PQgetResult");
  decltype(&::PQgetisnull) PQgetisnull = find("PQgetisnull");
  decltype(&::PQgetlength) PQgetlength = find("PQgetlength");
  decltype(&::PQgetvalue) PQgetvalue = find("PQgetvalue");
  decltype(&::PQisBusy) PQisBusy = find("PQisBusy");
  decltype(&::PQnfields) PQnfields = find("PQnfields");
  decltype(&::PQntuples) PQntuples = find("PQntuples");
  decltype(&::PQpipelineSync) PQpipelineSync = find("PQpipelineSync");
  decltype(&::PQresultErrorField) PQresultErrorField = find("PQresultErrorField");
  decltype(&::PQresultStatus) PQresultStatus = find("PQresultStatus");
  decltype(&::PQsendPrepare) PQsendPrepare = find("PQsendPrepare");
  decltype(&::PQsendQuery) PQsendQuery = find("PQsendQuery");
  decltype(&::PQsendQueryParams) PQsendQueryParams = find("PQsendQueryParams");
  decltype(&::PQsendQueryPrepared) PQsendQueryPrepared = find("PQsendQueryPrepared");
  decltype(&::PQsetNoticeProcessor) PQsetNoticeProcessor = find("PQsetNoticeProcessor");
  decltype(&::PQsetSingleRowMode) PQsetSingleRowMode = find("PQsetSingleRowMode");
  decltype(&::PQsetnonblocking) PQsetnonblocking = find("PQsetnonblocking");
  decltype(&::PQsocket) PQsocket = find("PQsocket");
  decltype(&::PQstatus) PQstatus = find("PQstatus");
};

/// Loads the library at `path`, or of that name, and never unloads it. kUnavailable: it does not
/// exist, or lacks a function.
base::Result<PostgresLibrary> load_libpq(const std::string& path);

/// Loads libpq if it is not loaded yet. To be called before a database URL is read.
base::Result<void> load_libpq();

/// REQUIRES: load_libpq() has succeeded in this process.
const PostgresLibrary& libpq();

}  // namespace muster::store
