// SPDX-License-Identifier: Apache-2.0

// Package admission holds the tests of what the API server itself refuses, before any controller of RukPak sees it:
// the schemas of the kinds (config/crd), the ValidatingAdmissionPolicies (config/admission) and the roles that they
// ask for (config/rbac). It stands before the flow, at the door. All of it runs on a real API server, as the users
// that it is about.
package admission
