package console

import (
	"context"
	"net/http"

	"github.com/google/uuid"
)

func (c *Console) usersRoutes() {
	c.mux.HandleFunc("GET /console/users", c.usersPage)
}

func (c *Console) usersPage(w http.ResponseWriter, r *http.Request) {
	c.render(w, r, "users", page{Title: "Users", Current: "users", Live: "users", Data: map[string]string{"Title": "Nothing yet", "Text": ""}})
}

func (c *Console) countUsers(ctx context.Context) int { return 0 }

// userChanged updates the open pages after a change of a user.
func (c *Console) userChanged(ctx context.Context, id uuid.UUID) {}
